// A tenth set of programs whose host side is ill (or not): one planted illness a case; NAME.cured is its twin.
#include "host_harness.h"
#include <atomic>
#include <condition_variable>
#include <fstream>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <sstream>
#include <thread>

#define PAIR(id, name)                                                                                                 \
    template <bool ill> Step id();                                                                                     \
    CASE(id##_as_is, name) { return id<true>(); }                                                                      \
    CASE(id##_better, name ".cured") { return id<false>(); }                                                           \
    template <bool ill> Step id()

// ---------------------------------------------------------------------------------------------------------------------
// Work for several cases.
static void launched() { CHECK(cudaGetLastError()); }
__global__ void advected(const float *__restrict__ from, float *__restrict__ to, int n, int work) { // compute: ~work * 4 FMAs an element
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float a = from[i], b = a * 0.5f, c = 0.1f, d = 0.2f;
#pragma unroll 4
        for (int k = 0; k < work; ++k) a = fmaf(a, 0.9f, c), b = fmaf(b, 0.8f, d), c = fmaf(c, 0.7f, 0.01f), d = fmaf(d, 0.6f, 0.02f);
        to[i] = a + b + c + d;
    }
}
__global__ void springs(const float4 *__restrict__ at, float4 *__restrict__ next, int side) { // a cloth: four neighbours
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= side * side) return;
    int x = i % side, y = i / side;
    float4 p = at[i], force = {0, 0, -0.01f, 0};
    auto pulled = [&](int j) {
        float4 q = at[j];
        float dx = q.x - p.x, dy = q.y - p.y, dz = q.z - p.z, length = sqrtf(dx * dx + dy * dy + dz * dz) + 1e-3f, f = 0.2f * (length - 0.1f) / length;
        force.x += f * dx, force.y += f * dy, force.z += f * dz;
    };
    if (x) pulled(i - 1);
    if (x + 1 < side) pulled(i + 1);
    if (y) pulled(i - side);
    if (y + 1 < side) pulled(i + side);
    next[i] = {p.x + 0.01f * force.x, p.y + 0.01f * force.y, p.z + 0.01f * force.z, p.w};
}
static std::string temporary(const char *name) { return std::string("/tmp/tenth-") + name + "-" + std::to_string(getpid()); }
struct Unlinked {
    std::string path;
    ~Unlinked() { unlink(path.c_str()); }
};

// ---------------------------------------------------------------------------------------------------------------------
// logging. A climate model: 30 kernels of ~0.045 ms a step and a diagnosis of 4096 columns that arrives in pinned memory; as is a line a column is written to the log, flushed each time (4096 * ~2.5 us
// = 10 ms, the GPU waits, since the next step's forcing is made by the host afterwards); the twin writes one line with the mean.
PAIR(climate_log, "trade-winds") {
    const int n = 8 * M, columns = 4096;
    float *a = on_device(n), *b = on_device(n), *diagnosis = pinned(columns);
    std::string path = temporary("winds");
    FILE *log = fopen(path.c_str(), "w");
    auto gone = std::make_shared<Unlinked>(Unlinked{path});
    return [=](int index) {
        (void)gone;
        for (int k = 0; k < 30; ++k) advected<<<132 * 8, 256>>>(k % 2 ? b : a, k % 2 ? a : b, n, 32), launched();
        CHECK(cudaMemcpyAsync(diagnosis, a, columns * 4, cudaMemcpyDeviceToHost));
        CHECK(cudaStreamSynchronize(0));
        double mean = 0;
        for (int c = 0; c < columns; ++c) {
            mean += diagnosis[c];
            if (ill) {
                fprintf(log, "[debug] step %d column %d humidity %.6f flux %.4e\n", index, c, diagnosis[c], diagnosis[c] * 0.37);
                fflush(log);
            }
        }
        fprintf(log, "[info] step %d mean %.6f\n", index, mean / columns);
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// file-io. Seismic shots: each step reads a shot (24 MB) from its file into pinned memory (page cache: ~4 to 6 ms), sends it, migrates it (~3 ms). The twin has the four shots in pinned memory from the
// start. The read is not overlapped: it waits for the buffer.
PAIR(shots, "air-guns") {
    const size_t n = 6 * M;
    const int shots = 4;
    std::string path = temporary("shots");
    {
        std::vector<float> shot(n, 0.25f);
        std::ofstream file(path, std::ios::binary);
        for (int k = 0; k < shots; ++k) file.write((const char *)shot.data(), n * 4);
    }
    auto gone = std::make_shared<Unlinked>(Unlinked{path});
    float *stage = pinned(ill ? n : n * shots), *traces = on_device(n), *image = on_device(n);
    if (!ill) {
        std::ifstream file(path, std::ios::binary);
        file.read((char *)stage, n * 4 * shots);
    }
    return [=](int index) {
        (void)gone;
        const float *shot = stage;
        if (ill) {
            int file = open(path.c_str(), O_RDONLY);
            for (size_t got = 0; got < n * 4;) got += pread(file, (char *)stage + got, std::min<size_t>(n * 4 - got, M), (index % shots) * n * 4 + got);
            close(file);
        } else
            shot += (index % shots) * n;
        CHECK(cudaMemcpyAsync(traces, shot, n * 4, cudaMemcpyHostToDevice));
        for (int k = 0; k < 6; ++k) advected<<<132 * 8, 256>>>(k % 2 ? image : traces, k % 2 ? traces : image, n, 160), launched();
        CHECK(cudaStreamSynchronize(0));
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// launch-bound. 24 cloths of 32 x 32 masses, 96 steps in time: a kernel (one block, ~2.5 us) a cloth and step: 2304 launches of ~2.2 us = 5 ms or more; the twin has a block a cloth with all the steps inside.
// Beside: a kernel of 0.15 ms. (The cloths are independent: one may also say that the kernels could run beside each other.)
__global__ void cloth_step(const float4 *at, float4 *next) {
    int i = threadIdx.x, x = i % 32, y = i / 32;
    float4 p = at[i];
    float4 l = x ? at[i - 1] : p, r = x < 31 ? at[i + 1] : p, u = y ? at[i - 32] : p, d = y < 31 ? at[i + 32] : p;
    next[i] = {p.x + 0.1f * (l.x + r.x + u.x + d.x - 4 * p.x), p.y + 0.1f * (l.y + r.y + u.y + d.y - 4 * p.y), p.z + 0.1f * (l.z + r.z + u.z + d.z - 4 * p.z) - 1e-4f, p.w};
}
__global__ void cloth_steps(float4 *all, int steps) {
    __shared__ float4 at[1024];
    int i = threadIdx.x, x = i % 32, y = i / 32;
    float4 p = all[blockIdx.x * 1024 + i];
    for (int k = 0; k < steps; ++k) {
        at[i] = p;
        __syncthreads();
        float4 l = x ? at[i - 1] : p, r = x < 31 ? at[i + 1] : p, u = y ? at[i - 32] : p, d = y < 31 ? at[i + 32] : p;
        p = {p.x + 0.1f * (l.x + r.x + u.x + d.x - 4 * p.x), p.y + 0.1f * (l.y + r.y + u.y + d.y - 4 * p.y), p.z + 0.1f * (l.z + r.z + u.z + d.z - 4 * p.z) - 1e-4f, p.w};
        __syncthreads();
    }
    all[blockIdx.x * 1024 + i] = p;
}
PAIR(cloths, "flags-in-a-breeze") {
    const int cloths = 24, steps = 96, n = 16 * M;
    float4 *all = (float4 *)on_device(cloths * 4096), *spare = (float4 *)on_device(4096);
    float *light = on_device(n), *shade = on_device(n);
    return [=](int) {
        if (ill)
            for (int c = 0; c < cloths; ++c)
                for (int k = 0; k < steps; ++k) cloth_step<<<1, 1024>>>(k % 2 ? spare : all + c * 1024, k % 2 ? all + c * 1024 : spare), launched();
        else
            cloth_steps<<<cloths, 1024>>>(all, steps), launched();
        advected<<<132 * 8, 256>>>(light, shade, n, 64), launched();
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// sync-each-operation. Optical flow by 5 levels and 40 sweeps: kernels of 3 to 40 us; a macro of "debug" synchronises and asks for an error after each (~10 us: the launch comes after the end of the one
// before); the twin synchronises at the end of the step.
template <bool each> static void verified() {
    if (each) CHECK(cudaDeviceSynchronize());
    CHECK(cudaGetLastError());
}
PAIR(flow, "dancers-seen") {
    const int side = 1024;
    float *u = on_device(side * side), *v = on_device(side * side);
    return [=](int) {
        for (int level = 4; level >= 0; --level) {
            int n = (side >> level) * (side >> level);
            for (int sweep = 0; sweep < 40; ++sweep) {
                advected<<<std::max(1, std::min(n / 256, 1056)), 256>>>(u, v, n, 3), verified<ill>();
                advected<<<std::max(1, std::min(n / 256, 1056)), 256>>>(v, u, n, 3), verified<ill>();
            }
        }
        CHECK(cudaDeviceSynchronize());
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// pageable-copies. Volumes of MRI (48 MB in, 16 MB out) from std::vector; the twin's vectors have an allocator of pinned memory. ~8 ms against ~1.5, the reconstruction ~1.5 ms.
template <class T> struct Locked {
    using value_type = T;
    Locked() = default;
    template <class U> Locked(const Locked<U> &) {}
    T *allocate(size_t n) {
        void *p;
        CHECK(cudaMallocHost(&p, n * sizeof(T)));
        return (T *)p;
    }
    void deallocate(T *p, size_t) { cudaFreeHost(p); }
    template <class U> bool operator==(const Locked<U> &) const { return true; }
    template <class U> bool operator!=(const Locked<U> &) const { return false; }
};
template <class Vector> struct Scanner {
    Vector echoes = Vector(12 * M, 0.5f), picture = Vector(4 * M, 0.f);
    float *k_space = on_device(12 * M), *volume = on_device(12 * M);
    void reconstruct() {
        CHECK(cudaMemcpyAsync(k_space, echoes.data(), echoes.size() * 4, cudaMemcpyHostToDevice));
        for (int k = 0; k < 4; ++k) advected<<<132 * 8, 256>>>(k % 2 ? volume : k_space, k % 2 ? k_space : volume, 12 * M, 48), launched();
        CHECK(cudaMemcpyAsync(picture.data(), k_space, picture.size() * 4, cudaMemcpyDeviceToHost));
        CHECK(cudaStreamSynchronize(0));
    }
};
PAIR(resonances, "spine-clinic") {
    using Vector = std::conditional_t<ill, std::vector<float>, std::vector<float, Locked<float>>>;
    auto scanner = std::make_shared<Scanner<Vector>>();
    return [=](int) { scanner->reconstruct(); };
}

// ---------------------------------------------------------------------------------------------------------------------
// no-copy-overlap. Video frames (pinned, 24 slices of 8 MB) are sent (0.16 ms), upscaled (~0.13 ms) and fetched (0.16 ms), all on one stream: 24 * 0.45 = 10.8 ms; the twin deals them to four streams: copies
// both ways beside kernels: ~4.5 ms.
PAIR(upscaled, "restored-newsreels") {
    const int slices = 24, n = 2 * M;
    auto lanes = streams(ill ? 1 : 4, cudaStreamNonBlocking);
    std::vector<float *> in, out;
    for (size_t k = 0; k < lanes.size(); ++k) in.push_back(on_device(n)), out.push_back(on_device(n));
    float *frames = pinned((size_t)n * slices), *bigger = pinned((size_t)n * slices);
    return [=](int) {
        for (int k = 0; k < slices; ++k) {
            int lane = k % lanes.size();
            CHECK(cudaMemcpyAsync(in[lane], frames + (size_t)k * n, n * 4, cudaMemcpyHostToDevice, lanes[lane]));
            advected<<<132 * 4, 256, 0, lanes[lane]>>>(in[lane], out[lane], n, 420), launched();
            CHECK(cudaMemcpyAsync(bigger + (size_t)k * n, out[lane], n * 4, cudaMemcpyDeviceToHost, lanes[lane]));
        }
        for (auto lane : lanes) CHECK(cudaStreamSynchronize(lane));
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// small-copies. A SLAM map: 1500 key frames changed their pose (64 B) and their 48 landmarks (576 B): a copy each (3000 of ~2.5 us = 7 ms); the twin packs them (1 MB) and a kernel deals them out.
__global__ void dealt_out(const float *__restrict__ packed, float *__restrict__ map, const int *__restrict__ slots, int count, int each) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count * each; i += gridDim.x * blockDim.x) map[slots[i / each] * 256 + i % each] = packed[i];
}
PAIR(key_frames, "lawn-mower") {
    const int frames = 1500, n = 16 * M;
    float *map = on_device(4096 * 256), *packed = pinned(frames * 160), *arrived = on_device(frames * 160), *a = on_device(n), *b = on_device(n);
    std::vector<int> slots(frames);
    for (int k = 0; k < frames; ++k) slots[k] = k * 2654435761u % 4096u;
    int *there = (int *)on_device(frames);
    CHECK(cudaMemcpy(there, slots.data(), frames * 4, cudaMemcpyHostToDevice));
    return [=](int index) {
        for (int k = 0; k < frames; ++k) packed[k * 160] = index + 0.1f * k;
        if (ill)
            for (int k = 0; k < frames; ++k) {
                CHECK(cudaMemcpyAsync(map + slots[k] * 256, packed + k * 160, 16 * 4, cudaMemcpyHostToDevice));
                CHECK(cudaMemcpyAsync(map + slots[k] * 256 + 16, packed + k * 160 + 16, 144 * 4, cudaMemcpyHostToDevice));
            }
        else {
            CHECK(cudaMemcpyAsync(arrived, packed, frames * 160 * 4, cudaMemcpyHostToDevice));
            dealt_out<<<132 * 2, 256>>>(arrived, map, there, frames, 160), launched();
        }
        for (int k = 0; k < 4; ++k) advected<<<132 * 8, 256>>>(a, b, n, 100), launched();
        CHECK(cudaStreamSynchronize(0));
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// allocation-in-loop. A tensor network: 40 contractions a step, each with its own result and workspace (RAII, cudaMalloc of 24 and 8 MB: ~100 us or more with cudaFree, which waits for the kernel); the twin's
// class takes them from the pool (cudaMallocAsync, nothing released).
template <bool pool> struct Scratch {
    float *data;
    explicit Scratch(size_t n) {
        if (pool)
            CHECK(cudaMallocAsync(&data, n * 4, 0));
        else
            CHECK(cudaMalloc(&data, n * 4));
    }
    ~Scratch() {
        if (pool)
            cudaFreeAsync(data, 0);
        else
            cudaFree(data);
    }
    Scratch(const Scratch &) = delete;
};
PAIR(contractions, "tensor-train") {
    cudaMemPool_t pool;
    CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    uint64_t all = ~0ull;
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
    float *core = on_device(6 * M);
    return [=](int) {
        for (int k = 0; k < 40; ++k) {
            Scratch<!ill> result(6 * M), workspace(2 * M);
            advected<<<132 * 8, 256>>>(core, result.data, 6 * M, 24), launched();
            advected<<<132 * 8, 256>>>(result.data, workspace.data, 2 * M, 24), launched();
            advected<<<132 * 8, 256>>>(workspace.data, core, 2 * M, 24), launched();
        }
        CHECK(cudaStreamSynchronize(0));
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// page-faults. Ranks of pages in managed memory (32 MB): each step the host changes the teleport vector (all of its 4 KB pages), kernels read it: it goes there and back by faults (~10 ms); the twin
// keeps the vector in pinned memory and copies it.
PAIR(page_ranks, "citations") {
    const int n = 8 * M;
    float *teleport, *there = on_device(n), *ranks = on_device(n), *next = on_device(n);
    if (ill)
        CHECK(cudaMallocManaged(&teleport, n * 4));
    else
        teleport = pinned(n);
    for (int i = 0; i < n; ++i) teleport[i] = 1e-3f;
    return [=](int index) {
        for (int i = index % 256; i < n; i += 256) teleport[i] = 0.5f * teleport[i] + 1e-4f;
        if (!ill) CHECK(cudaMemcpyAsync(there, teleport, n * 4, cudaMemcpyHostToDevice));
        for (int k = 0; k < 8; ++k) {
            advected<<<132 * 8, 256>>>(ill ? teleport : there, next, n, 32), launched();
            advected<<<132 * 8, 256>>>(next, ranks, n, 32), launched();
        }
        CHECK(cudaStreamSynchronize(0));
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// default-stream. Eight regions of a forecast on eight streams, 12 rounds of a kernel that fills a sixth of the GPU (22 blocks, ~60 us); after each round of a region a helper clears its counters on stream 0
// (a <<<1, 32>>> without a stream): all wait for all. Twin: the helper takes the region's stream.
__global__ void cleared(int *counters) { counters[threadIdx.x] = 0; }
struct Region {
    cudaStream_t stream;
    float *now, *next;
    int *counters;
};
template <bool ill> static void begin_round(const Region &r) { cleared<<<1, 32, 0, ill ? 0 : r.stream>>>(r.counters), launched(); }
PAIR(regions, "monsoon") {
    const int n = 22 * 256 * 16;
    auto lanes = streams(8, cudaStreamDefault);
    std::vector<Region> all;
    for (auto lane : lanes) all.push_back({lane, on_device(n), on_device(n), (int *)on_device(32)});
    return [=](int) {
        for (int round = 0; round < 12; ++round)
            for (auto &r : all) {
                begin_round<ill>(r);
                advected<<<22, 256, 0, r.stream>>>(r.now, r.next, n, 700), launched();
            }
        CHECK(cudaDeviceSynchronize());
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// kernels-not-concurrent. 48 independent factorisations of different sizes, a kernel of 8 to 20 blocks each (~100 us), in one stream; the twin deals them to 12 streams (events fork and join).
PAIR(factorisations, "power-grids") {
    const int jobs = 48;
    auto lanes = streams(12, cudaStreamNonBlocking);
    std::vector<float *> a, b;
    for (int k = 0; k < jobs; ++k) a.push_back(on_device(256 * 20 * 8)), b.push_back(on_device(256 * 20 * 8));
    return [=](int) {
        for (int k = 0; k < jobs; ++k) {
            int blocks = 8 + k * 5 % 13;
            advected<<<blocks, 256, 0, lanes[ill ? 0 : k % lanes.size()]>>>(a[k], b[k], 256 * blocks * 8, 3000), launched();
        }
        for (auto lane : lanes) CHECK(cudaStreamSynchronize(lane));
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// periodic-slow-iteration. Fluid particles: ~3 ms of kernels a step; at each sixth the host sorts 400 K cells' keys for the neighbour lists (std::stable_sort, ~35 ms) and sends them; the twin
// takes the order that is still valid (the keys did not change: it checks a flag that the GPU set) and only sends it.
PAIR(neighbours, "harbour-wall") {
    const int n = 16 * M, keys = 400000;
    float *a = on_device(n), *b = on_device(n);
    auto order = std::make_shared<std::vector<int>>(keys);
    auto cells = std::make_shared<std::vector<unsigned>>(keys);
    for (int i = 0; i < keys; ++i) (*cells)[i] = (unsigned)i * 2654435761u >> 8;
    int *stage;
    CHECK(cudaMallocHost(&stage, keys * 4));
    int *there = (int *)on_device(keys);
    auto sort = [=] {
        std::iota(order->begin(), order->end(), 0);
        std::stable_sort(order->begin(), order->end(), [&](int x, int y) { return (*cells)[x] < (*cells)[y]; });
    };
    sort();
    return [=](int index) {
        if (index % 6 == 5) {
            if (ill) sort();
            memcpy(stage, order->data(), keys * 4);
            CHECK(cudaMemcpyAsync(there, stage, keys * 4, cudaMemcpyHostToDevice));
        }
        for (int k = 0; k < 8; ++k) advected<<<132 * 8, 256>>>(k % 2 ? b : a, k % 2 ? a : b, n, 90), launched();
        CHECK(cudaStreamSynchronize(0));
    };
}

// =====================================================================================================================
// Healthy.
// graphs. A cloth of 256 x 256: 300 kernels of ~3 us, in a graph that is launched once a step.
CASE(cloth_graph, "washing-line") {
    const int side = 256;
    float4 *a = (float4 *)on_device(side * side * 4), *b = (float4 *)on_device(side * side * 4);
    cudaStream_t stream = streams(1, cudaStreamNonBlocking)[0];
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int k = 0; k < 300; ++k) springs<<<side * side / 256, 256, 0, stream>>>(k % 2 ? b : a, k % 2 ? a : b, side), launched();
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    return [=](int) { CHECK(cudaGraphLaunch(ready, stream)); };
}

// overlapped. Slabs stream through the GPU: 3 streams, copies (0.3 ms each way) beside kernels of ~0.5 ms: the kernels bind.
CASE(slabs, "core-samples") {
    const int n = 4 * M, count = 12;
    auto lanes = streams(3, cudaStreamNonBlocking);
    float *in = pinned((size_t)n * 3), *out = pinned((size_t)n * 3);
    std::vector<float *> a, b;
    for (int k = 0; k < 3; ++k) a.push_back(on_device(n)), b.push_back(on_device(n));
    return [=](int) {
        for (int k = 0; k < count; ++k) {
            int lane = k % 3;
            CHECK(cudaMemcpyAsync(a[lane], in + (size_t)lane * n, n * 4, cudaMemcpyHostToDevice, lanes[lane]));
            advected<<<132 * 8, 256, 0, lanes[lane]>>>(a[lane], b[lane], n, 900), launched();
            CHECK(cudaMemcpyAsync(out + (size_t)lane * n, b[lane], n * 4, cudaMemcpyDeviceToHost, lanes[lane]));
        }
        for (auto lane : lanes) CHECK(cudaStreamSynchronize(lane));
    };
}

// gpu-busy. Kernels of ~1 ms end to end; the host writes a line a step, reads a number each step and keeps a thread that compresses nothing: all hidden behind 20 ms of kernels.
CASE(busy, "glass-furnace") {
    const int n = 32 * M;
    float *a = on_device(n), *b = on_device(n), *number = pinned(64);
    std::string path = temporary("furnace");
    FILE *log = fopen(path.c_str(), "w");
    auto gone = std::make_shared<Unlinked>(Unlinked{path});
    return [=](int index) {
        (void)gone;
        for (int k = 0; k < 16; ++k) advected<<<132 * 8, 256>>>(k % 2 ? b : a, k % 2 ? a : b, n, 200), launched();
        CHECK(cudaMemcpyAsync(number + index % 64, a, 4, cudaMemcpyDeviceToHost));
        fprintf(log, "step %d: %f\n", index, number[(index + 63) % 64]);
    };
}

int main(int argc, char **argv) { return run_cases(argc, argv); }
