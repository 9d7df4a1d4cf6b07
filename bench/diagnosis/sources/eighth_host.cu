// An eighth set of programs whose host side is ill (or not): one planted illness a case; NAME.cured is its twin.
#include "host_harness.h"
#include <filesystem>
#include <memory>
#include <numeric>
#include <thread>

#define BOTH(id, name, make)                                                                                           \
    CASE(id##_ill, name) { return make<true>(); }                                                                      \
    CASE(id##_cured, name ".cured") { return make<false>(); }

// ---------------------------------------------------------------------------------------------------------------------
// Kernels of several cases; `rounds` sets the time: two FMAs a round and element (132 SMs: ~1.6e13 a second).
__global__ void churn(float *data, int n, int rounds, float pull) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float a = data[i], b = 0.25f * a;
#pragma unroll 4
        for (int k = 0; k < rounds; ++k) a = fmaf(pull - a, 0.02f, a), b = fmaf(b, 0.98f, 0.002f);
        data[i] = fmaf(b, 1e-3f, a);
    }
}
__global__ void mapped(const float *__restrict__ in, float *__restrict__ out, int n, int rounds) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float a = in[i], b = 1.f;
#pragma unroll 4
        for (int k = 0; k < rounds; ++k) a = fmaf(a, 0.998f, 2e-3f), b = fmaf(b, 0.997f, a);
        out[i] = a - b;
    }
}
static void fine() { CHECK(cudaGetLastError()); }
static cudaEvent_t event() {
    cudaEvent_t made;
    CHECK(cudaEventCreateWithFlags(&made, cudaEventDisableTiming));
    return made;
}

// ---------------------------------------------------------------------------------------------------------------------
// launch-bound. A belief propagation along a tree of 12 levels, up and down, 24 sweeps: a kernel a level, of 2 K nodes at most (~2 us each, launched at ~2.5 us): 528 launches = 1.5 ms; the twin
// has a block that does all levels of all sweeps with barriers (~0.4 us a level). A kernel of 0.1 ms beside.
__device__ inline void upward(float *belief, int at) { belief[at] = fmaf(0.4f, belief[2 * at + 1] + belief[2 * at + 2], 0.1f * belief[at]); }
__device__ inline void downward(float *belief, int at) { belief[at] = fmaf(0.2f, belief[(at - 1) / 2], 0.75f * belief[at]); }
__global__ void level_up(float *belief, int first) { upward(belief, first + blockIdx.x * blockDim.x + threadIdx.x); }
__global__ void level_down(float *belief, int first) { downward(belief, first + blockIdx.x * blockDim.x + threadIdx.x); }
__global__ void whole_tree(float *belief, int levels, int sweeps) {
    for (int s = 0; s < sweeps; ++s) {
        for (int l = levels - 2; l >= 0; --l) {
            for (int k = threadIdx.x; k < 1 << l; k += blockDim.x) upward(belief, (1 << l) - 1 + k);
            __syncthreads();
        }
        for (int l = 1; l < levels; ++l) {
            for (int k = threadIdx.x; k < 1 << l; k += blockDim.x) downward(belief, (1 << l) - 1 + k);
            __syncthreads();
        }
    }
}
template <bool ill> Step pedigree() {
    const int levels = 12, sweeps = 24, n = 4 * M;
    float *belief = on_device(1 << levels), *rest = on_device(n);
    return [=](int) {
        if (ill) {
            for (int s = 0; s < sweeps; ++s) {
                for (int l = levels - 2; l >= 0; --l) level_up<<<std::max(1, (1 << l) / 128), std::min(1 << l, 128)>>>(belief, (1 << l) - 1);
                for (int l = 1; l < levels; ++l) level_down<<<std::max(1, (1 << l) / 128), std::min(1 << l, 128)>>>(belief, (1 << l) - 1);
            }
        } else {
            whole_tree<<<1, 1024>>>(belief, levels, sweeps);
        }
        churn<<<264, 512>>>(rest, n, 40, 0.3f);
        fine();
    };
}
BOTH(pedigree, "pedigree-of-horses", pedigree)

// ---------------------------------------------------------------------------------------------------------------------
// sync-each-operation. Multigrid for a pressure: 8 levels, smoothers and transfers; a profiler of the programmer's own waits for an event after each (~10 us of idling each): 138
// operations of 3 to 6 us; the twin has the same events, and waits once at the end.
template <bool ill> struct Stopwatch {
    cudaEvent_t end = event();
    void lap() const {
        CHECK(cudaEventRecord(end));
        if (ill) CHECK(cudaEventSynchronize(end));
    }
};
template <bool ill> Step pressure() {
    Stopwatch<ill> watch;
    std::vector<float *> level;
    for (int l = 0; l < 8; ++l) level.push_back(on_device((2 * M) >> l));
    return [=](int) {
        for (int cycle = 0; cycle < 6; ++cycle) {
            for (int l = 0; l < 8; ++l)
                for (int s = 0; s < 2; ++s) churn<<<std::max(8, 528 >> l), 256>>>(level[l], (2 * M) >> l, 12, 0.1f * l), watch.lap();
            for (int l = 6; l >= 0; --l) churn<<<std::max(8, 528 >> l), 256>>>(level[l], (2 * M) >> l, 12, 0.2f), watch.lap();
        }
        fine();
        CHECK(cudaEventSynchronize(watch.end));
    };
}
BOTH(pressure, "water-under-pressure", pressure)

// ---------------------------------------------------------------------------------------------------------------------
// scalar-reads. Line search of a fit: 60 trial lengths a step, each by a kernel of ~10 us and a loss of four bytes that the host reads to choose the next; the twin keeps the choice on the GPU.
__global__ void trial(const float *__restrict__ at, int n, float *state, float *loss) {
    float length = state[0], mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float off = fmaf(length, 0.5f, at[i]) - 1.f;
        mine = fmaf(off, off, mine);
    }
    for (int o = 16; o; o /= 2) mine += __shfl_down_sync(~0u, mine, o);
    if (threadIdx.x % 32 == 0) atomicAdd(loss, mine / n);
}
__global__ void chosen(float *state, float *loss) {
    if (*loss < state[1]) state[1] = *loss, state[0] *= 1.1f;
    else state[0] *= 0.8f;
    *loss = 0;
}
template <bool ill> Step fit() {
    const int n = 2 * M;
    float *at = on_device(n), *state = on_device(2), *loss = on_device(1), *start = pinned(2), *seen = pinned(1);
    return [=](int) {
        float best = 1e9f, length = 0.1f;
        start[0] = length, start[1] = best;
        CHECK(cudaMemcpyAsync(state, start, 8, cudaMemcpyHostToDevice));
        for (int k = 0; k < 60; ++k) {
            trial<<<264, 512>>>(at, n, state, loss);
            if (ill) {
                CHECK(cudaMemcpy(seen, loss, 4, cudaMemcpyDeviceToHost));
                if (*seen < best) best = *seen, length *= 1.1f;
                else length *= 0.8f;
                start[0] = length;
                CHECK(cudaMemcpyAsync(state, start, 4, cudaMemcpyHostToDevice));
                CHECK(cudaMemsetAsync(loss, 0, 4));
            } else {
                chosen<<<1, 1>>>(state, loss);
            }
        }
        fine();
        CHECK(cudaMemcpy(seen, state, 4, cudaMemcpyDeviceToHost));
    };
}
BOTH(fit, "light-curve-fit", fit)

// ---------------------------------------------------------------------------------------------------------------------
// pageable-copies. Each step a rendered frame (64 MB of float) goes back into a frame of an std::vector ring (pageable: ~10 GB/s and the driver's staging), 6 ms, against ~1.2 ms; kernel: 0.5 ms.
struct Frames {
    std::vector<std::vector<float>> ring;
    bool registered;
    Frames(int count, size_t n, bool registered) : ring(count, std::vector<float>(n)), registered(registered) {
        if (registered)
            for (auto &frame : ring) CHECK(cudaHostRegister(frame.data(), n * 4, cudaHostRegisterDefault));
    }
    ~Frames() {
        if (registered)
            for (auto &frame : ring) cudaHostUnregister(frame.data());
    }
};
template <bool ill> Step glaze() {
    const int n = 16 * M;
    auto frames = std::make_shared<Frames>(3, n, !ill);
    float *picture = on_device(n), *shaded = on_device(n);
    cudaStream_t stream = streams(1, cudaStreamNonBlocking)[0];
    return [=](int index) {
        mapped<<<528, 256, 0, stream>>>(picture, shaded, n, 200);
        fine();
        CHECK(cudaMemcpyAsync(frames->ring[index % 3].data(), shaded, n * 4ull, cudaMemcpyDeviceToHost, stream));
        CHECK(cudaStreamSynchronize(stream));
    };
}
BOTH(glaze, "glazes-rendered", glaze)

// ---------------------------------------------------------------------------------------------------------------------
// no-copy-overlap. Sixteen slabs of a sounding (16 MB each, page-locked): in, a kernel of ~0.35 ms, out; all in a stream: 16 x (0.3 + 0.35 + 0.3) = 15 ms; the twin has three streams and buffers, so
// that copies in, kernels and copies out are at work together: ~6 ms.
template <bool ill> Step sounding() {
    const int n = 4 * M, slabs = 16, sets = 3;
    float *host = pinned((size_t)n * slabs), *back = pinned((size_t)n * slabs);
    std::vector<float *> in, out;
    for (int k = 0; k < sets; ++k) in.push_back(on_device(n)), out.push_back(on_device(n));
    auto lanes = streams(sets, cudaStreamNonBlocking);
    return [=](int) {
        for (int s = 0; s < slabs; ++s) {
            int set = s % sets;
            cudaStream_t lane = lanes[ill ? 0 : set];
            CHECK(cudaMemcpyAsync(in[set], host + (size_t)s * n, n * 4ull, cudaMemcpyHostToDevice, lane));
            mapped<<<528, 256, 0, lane>>>(in[set], out[set], n, 700);
            fine();
            CHECK(cudaMemcpyAsync(back + (size_t)s * n, out[set], n * 4ull, cudaMemcpyDeviceToHost, lane));
        }
        for (auto lane : lanes) CHECK(cudaStreamSynchronize(lane));
    };
}
BOTH(sounding, "slabs-of-sea-bed", sounding)

// ---------------------------------------------------------------------------------------------------------------------
// small-copies. Results of 1200 wells (64 floats each, in rows of a pitch of 4 KB on the GPU) are fetched well by well, asynchronously into page-locked memory: 1200 x ~2.5 us = 3 ms and more; the twin packs
// them by a kernel and copies once. The simulation: 0.4 ms.
__global__ void packed(const float *from, float *to, int wells) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < wells * 64) to[i] = from[(size_t)(i / 64) * 1024 + i % 64];
}
template <bool ill> Step wells() {
    const int count = 1200;
    float *state = on_device((size_t)count * 1024), *pack = on_device(count * 64), *host = pinned(count * 64);
    cudaStream_t stream = streams(1, cudaStreamNonBlocking)[0];
    return [=](int) {
        churn<<<528, 256, 0, stream>>>(state, count * 1024, 2500, 0.5f);
        if (ill) {
            for (int w = 0; w < count; ++w) CHECK(cudaMemcpyAsync(host + w * 64, state + (size_t)w * 1024, 256, cudaMemcpyDeviceToHost, stream));
        } else {
            packed<<<count * 64 / 256, 256, 0, stream>>>(state, pack, count);
            CHECK(cudaMemcpyAsync(host, pack, count * 256, cudaMemcpyDeviceToHost, stream));
        }
        fine();
        CHECK(cudaStreamSynchronize(stream));
    };
}
BOTH(wells, "wells-on-a-plate", wells)

// ---------------------------------------------------------------------------------------------------------------------
// allocation-in-loop. A tracker of larvae: each of 8 frames a step stages its background in a page-locked buffer that it allocates and frees (4 MB: ~1.5 ms of locking pages); the twin keeps one.
// Kernels: 8 x ~0.15 ms.
struct Staging {
    float *data;
    explicit Staging(size_t n) { CHECK(cudaHostAlloc(&data, n * 4, cudaHostAllocDefault)); }
    Staging(const Staging &) = delete;
    ~Staging() { CHECK(cudaFreeHost(data)); }
};
template <bool ill> Step larvae() {
    const int n = M;
    float *frame = on_device(n), *background = on_device(n);
    std::shared_ptr<Staging> kept = ill ? nullptr : std::make_shared<Staging>(n);
    return [=](int index) {
        for (int f = 0; f < 8; ++f) {
            std::shared_ptr<Staging> staging = kept ? kept : std::make_shared<Staging>(n);
            for (int k = 0; k < 64; ++k) staging->data[k * 1024] = index + f;
            CHECK(cudaMemcpyAsync(background, staging->data, n * 4ull, cudaMemcpyHostToDevice));
            mapped<<<528, 256>>>(background, frame, n, 1200);
            fine();
            CHECK(cudaDeviceSynchronize());
        }
    };
}
BOTH(larvae, "larvae-at-night", larvae)

// ---------------------------------------------------------------------------------------------------------------------
// page-faults. A flood model's field of 32 MB in unified memory; the host writes the rain on it each step (one float of each 4 KB page), so all pages come to the host and go back by faults: several ms;
// the twin has the field on the GPU and sends the rain (32 KB, page-locked) to a kernel that adds it.
__global__ void rained(float *field, const float *rain, int pages) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < pages) field[(size_t)i * 1024] += rain[i];
}
template <bool ill> Step flood() {
    const int n = 8 * M, pages = n / 1024;
    float *field, *rain = pinned(pages), *drops = on_device(pages);
    if (ill) CHECK(cudaMallocManaged(&field, n * 4ull));
    else field = on_device(n);
    if (ill) std::fill(field, field + n, 0.f);
    return [=](int index) {
        for (int p = 0; p < pages; ++p) rain[p] = 1e-3f * ((p + index) % 17);
        if (ill) {
            for (int p = 0; p < pages; ++p) field[(size_t)p * 1024] += rain[p];
        } else {
            CHECK(cudaMemcpyAsync(drops, rain, pages * 4, cudaMemcpyHostToDevice));
            rained<<<pages / 256, 256>>>(field, drops, pages);
        }
        for (int k = 0; k < 3; ++k) churn<<<528, 256>>>(field, n, 60, 0.2f);
        fine();
        CHECK(cudaDeviceSynchronize());
    };
}
BOTH(flood, "rain-on-a-plain", flood)

// ---------------------------------------------------------------------------------------------------------------------
// default-stream. Six cameras, each with a blocking stream, and in each of 10 rounds a kernel of ~40 us on 20 blocks; after each launch a mark is set in the legacy default stream, so the streams
// take turns: 60 x 45 us = 2.7 ms; the twin sets the mark in the camera's stream, with non-blocking streams: 0.5 ms.
template <bool ill> Step cameras() {
    const int n = 20 * 256 * 4, count = 6;
    auto lanes = streams(count, ill ? cudaStreamDefault : cudaStreamNonBlocking);
    std::vector<float *> view;
    for (int c = 0; c < count; ++c) view.push_back(on_device(n));
    float *marks = on_device(count);
    return [=](int) {
        for (int round = 0; round < 10; ++round)
            for (int c = 0; c < count; ++c) {
                churn<<<20, 256, 0, lanes[c]>>>(view[c], n, 1500, 0.1f * c);
                CHECK(cudaMemsetAsync(marks + c, 0, 4, ill ? cudaStreamLegacy : lanes[c]));
            }
        fine();
        for (auto lane : lanes) CHECK(cudaStreamSynchronize(lane));
    };
}
BOTH(cameras, "cameras-in-a-barn", cameras)

// ---------------------------------------------------------------------------------------------------------------------
// kernels-not-concurrent. Forty patients' circulations, each a kernel of 4 blocks and ~50 us, all in a stream, twice: 4 ms; the twin has 20 streams: 0.3 ms.
__global__ void circulation(float *vessel, int n, int rounds, float pulse) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float p = vessel[i], q = 0.f;
        for (int k = 0; k < rounds; ++k) q = fmaf(0.01f, pulse - p, 0.99f * q), p = fmaf(0.02f, q, p);
        vessel[i] = p;
    }
}
template <bool ill> Step patients() {
    const int count = 40, n = 4 * 256;
    std::vector<float *> vessel;
    for (int p = 0; p < count; ++p) vessel.push_back(on_device(n));
    auto lanes = streams(ill ? 1 : 20, cudaStreamNonBlocking);
    return [=](int) {
        for (int round = 0; round < 2; ++round)
            for (int p = 0; p < count; ++p) circulation<<<4, 256, 0, lanes[p % lanes.size()]>>>(vessel[p], n, 8000, 0.5f + 0.01f * p);
        fine();
        for (auto lane : lanes) CHECK(cudaStreamSynchronize(lane));
    };
}
BOTH(patients, "circulations", patients)

// ---------------------------------------------------------------------------------------------------------------------
// file-io. After each step of a crack's growth the tip's state (1 MB) is written to a new file and synchronised to disk (fsync), as "safe" restarts; the GPU waits. The twin keeps the states in memory and writes each
// 64th step (not within the steps traced).
template <bool ill> Step crack() {
    const int n = 8 * M, kept = M / 4;
    float *field = on_device(n), *tip = pinned(kept);
    struct Folder {
        std::string name = "/tmp/eighth-" + std::to_string(getpid());
        Folder() { std::filesystem::create_directory(name); }
        ~Folder() {
            std::error_code ignored;
            std::filesystem::remove_all(name, ignored);
        }
    };
    auto folder = std::make_shared<Folder>();
    auto history = std::make_shared<std::vector<float>>(kept);
    return [=](int index) {
        for (int k = 0; k < 4; ++k) churn<<<528, 256>>>(field, n, 60, 0.4f);
        fine();
        CHECK(cudaMemcpy(tip, field, kept * 4ull, cudaMemcpyDeviceToHost));
        if (ill || index % 64 == 63) {
            std::string name = folder->name + "/tip." + std::to_string(index % 4);
            for (int copy = 0; copy < 4; ++copy) {
                FILE *file = fopen((name + "." + std::to_string(copy)).c_str(), "wb");
                fwrite(tip, 4, kept, file);
                fflush(file);
                fsync(fileno(file));
                fclose(file);
            }
        } else {
            memcpy(history->data(), tip, kept * 4ull);
        }
    };
}
BOTH(crack, "crack-in-a-wing", crack)

// ---------------------------------------------------------------------------------------------------------------------
// periodic-slow-iteration. Vesicles: each fifth step the host sorts and renumbers its copy of 128 Ki vesicles (~12 ms) while the GPU waits; the twin renumbers on a thread of the host and takes
// the order over five steps later. A step: ~3.5 ms.
template <bool ill> Step vesicles() {
    const int n = 4 * M, many = 128 << 10;
    float *field = on_device(n), *key = pinned(many);
    int *order, *order_device;
    CHECK(cudaMallocHost(&order, many * 4));
    CHECK(cudaMalloc(&order_device, many * 4));
    struct Helper {
        std::thread thread;
        ~Helper() {
            if (thread.joinable()) thread.join();
        }
    };
    auto helper = std::make_shared<Helper>();
    auto renumber = [=](int index) {
        std::iota(order, order + many, 0);
        for (int i = 0; i < many; ++i) key[i] = ((unsigned)i * 2654435761u + index * 977u) % 1000003u * 1e-3f;
        std::sort(order, order + many, [=](int a, int b) { return key[a] < key[b]; });
    };
    return [=](int index) {
        for (int k = 0; k < 4; ++k) churn<<<528, 256>>>(field, n, 2000, 0.4f);
        fine();
        if (index % 5 == 4) {
            CHECK(cudaDeviceSynchronize());
            if (ill) renumber(index);
            else if (helper->thread.joinable()) helper->thread.join();
            CHECK(cudaMemcpyAsync(order_device, order, many * 4, cudaMemcpyHostToDevice));
            CHECK(cudaDeviceSynchronize());
            if (!ill) helper->thread = std::thread([=] { renumber(index); });
        }
        CHECK(cudaDeviceSynchronize());
    };
}
BOTH(vesicles, "vesicles", vesicles)

// ---------------------------------------------------------------------------------------------------------------------
// Healthy, graphs: a filter of an orchestra's microphones: 300 kernels of ~2 us in a chain, recorded once.
CASE(orchestra, "orchestra") {
    const int n = 64 << 10;
    float *line = on_device(n);
    cudaStream_t stream = streams(1, cudaStreamNonBlocking)[0];
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int k = 0; k < 300; ++k) churn<<<64, 256, 0, stream>>>(line, n, 16 + k % 8, 1e-3f * k);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    return [=](int) {
        CHECK(cudaGraphLaunch(ready, stream));
        CHECK(cudaGraphLaunch(ready, stream));
    };
}

// Healthy, overlapped: a tide's hindcast: the next hour (48 MB, page-locked) comes in beside the kernel of this one (1.5 ms); events between the two streams; nothing else waits.
CASE(hindcast, "hindcast") {
    const int n = 12 * M;
    float *hours = pinned(2ull * n), *in[2] = {on_device(n), on_device(n)}, *out = on_device(n);
    auto lanes = streams(2, cudaStreamNonBlocking);
    cudaEvent_t came[2] = {event(), event()}, used[2] = {event(), event()};
    float *first = in[0], *second = in[1];
    cudaEvent_t came0 = came[0], came1 = came[1], used0 = used[0], used1 = used[1];
    return [=](int index) {
        for (int h = 0; h < 4; ++h) {
            bool odd = h & 1;
            float *to = odd ? second : first;
            CHECK(cudaStreamWaitEvent(lanes[0], odd ? used1 : used0, 0));
            CHECK(cudaMemcpyAsync(to, hours + (size_t)odd * n, n * 4ull, cudaMemcpyHostToDevice, lanes[0]));
            CHECK(cudaEventRecord(odd ? came1 : came0, lanes[0]));
            CHECK(cudaStreamWaitEvent(lanes[1], odd ? came1 : came0, 0));
            mapped<<<1056, 256, 0, lanes[1]>>>(to, out, n, 2000);
            fine();
            CHECK(cudaEventRecord(odd ? used1 : used0, lanes[1]));
        }
        if (index % 4 == 3) CHECK(cudaStreamSynchronize(lanes[1]));
    };
}

// Healthy, gpu-busy: a percolation in 60 kernels of ~60 us, launched far ahead; each step an allocation from the pool of the stream, a wait for the step before, and a small copy.
CASE(percolation, "percolation") {
    const int n = 4 * M;
    float *field = on_device(n), *seen = pinned(16);
    cudaStream_t stream = streams(1, cudaStreamNonBlocking)[0];
    cudaEvent_t done[2] = {event(), event()};
    cudaEvent_t even = done[0], odd = done[1];
    cudaMemPool_t pool;
    CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    uint64_t keep = 1ull << 30;
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
    return [=](int index) {
        float *scratch;
        CHECK(cudaMallocAsync((void **)&scratch, n * 4ull, stream));
        for (int k = 0; k < 60; ++k) {
            if (k % 2) mapped<<<1056, 256, 0, stream>>>(scratch, field, n, 120);
            else mapped<<<1056, 256, 0, stream>>>(field, scratch, n, 120);
        }
        fine();
        CHECK(cudaFreeAsync(scratch, stream));
        CHECK(cudaMemcpyAsync(seen, field, 64, cudaMemcpyDeviceToHost, stream));
        CHECK(cudaEventRecord(index & 1 ? odd : even, stream));
        CHECK(cudaEventSynchronize(index & 1 ? even : odd));
    };
}

int main(int argc, char **argv) { return run_cases(argc, argv); }
