// A ninth set of programs whose host side is ill (or not): one planted illness a case; NAME.cured is its twin.
#include "host_harness.h"
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>

#define PAIR(id, name)                                                                                                 \
    template <bool ill> Step id();                                                                                     \
    CASE(id##_as_is, name) { return id<true>(); }                                                                      \
    CASE(id##_better, name ".cured") { return id<false>(); }                                                           \
    template <bool ill> Step id()

// ---------------------------------------------------------------------------------------------------------------------
// Work for several cases: `depth` rounds of two FMAs an element.
__global__ void relaxed(const float *__restrict__ in, float *__restrict__ out, int n, int depth) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float u = in[i], v = 1.f - u;
#pragma unroll 4
        for (int k = 0; k < depth; ++k) u = fmaf(v, 0.01f, u * 0.99f), v = fmaf(v, 0.97f, 0.01f);
        out[i] = u + v;
    }
}
static void check() { CHECK(cudaGetLastError()); }
struct Lane {
    cudaStream_t stream;
    cudaEvent_t done;
    explicit Lane(unsigned flags = cudaStreamNonBlocking) {
        CHECK(cudaStreamCreateWithFlags(&stream, flags));
        CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    }
};
static std::string scratch_folder(const char *name) {
    std::string path = std::string("/tmp/ninth-") + name + "-" + std::to_string(getpid());
    std::filesystem::create_directories(path);
    return path;
}
struct Removed { // at exit
    std::string path;
    ~Removed() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
};

// ---------------------------------------------------------------------------------------------------------------------
// launch-bound. A bitonic sort of 16 K keys, 105 stages, 8 arrays one after the other: a kernel a stage (~2 us, launched in ~2.5 us): 840 launches = 2.1 ms; the twin has the stages of an array in one block with its keys in
// shared memory (64 KB), 8 blocks: ~0.3 ms. Beside: a kernel of ~0.2 ms.
__device__ inline void exchanged(unsigned *keys, int i, int span, int size) {
    int j = i ^ span;
    if (j > i) {
        unsigned a = keys[i], b = keys[j];
        bool up = (i & size) == 0;
        if ((a > b) == up) keys[i] = b, keys[j] = a;
    }
}
__global__ void stage(unsigned *keys, int span, int size) { exchanged(keys, blockIdx.x * blockDim.x + threadIdx.x, span, size); }
__global__ void all_stages(unsigned *keys, int n) {
    extern __shared__ unsigned mine[];
    keys += (size_t)blockIdx.x * n;
    for (int i = threadIdx.x; i < n; i += blockDim.x) mine[i] = keys[i];
    __syncthreads();
    for (int size = 2; size <= n; size *= 2)
        for (int span = size / 2; span; span /= 2) {
            for (int i = threadIdx.x; i < n; i += blockDim.x) exchanged(mine, i, span, size);
            __syncthreads();
        }
    for (int i = threadIdx.x; i < n; i += blockDim.x) keys[i] = mine[i];
}
__global__ void scrambled(unsigned *keys, int n, unsigned seed) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) keys[i] = (i + seed) * 2654435761u;
}
PAIR(sorting, "ears-of-wheat") {
    const int n = 16384, arrays = 8, other = 16 * M;
    unsigned *keys = (unsigned *)on_device(n * arrays);
    float *in = on_device(other), *out = on_device(other);
    CHECK(cudaFuncSetAttribute(all_stages, cudaFuncAttributeMaxDynamicSharedMemorySize, n * 4));
    return [=](int index) {
        scrambled<<<n * arrays / 256, 256>>>(keys, n * arrays, index);
        if (ill) {
            for (int a = 0; a < arrays; ++a)
                for (int size = 2; size <= n; size *= 2)
                    for (int span = size / 2; span; span /= 2) stage<<<n / 256, 256>>>(keys + a * n, span, size);
        } else {
            all_stages<<<arrays, 1024, n * 4>>>(keys, n);
        }
        relaxed<<<1056, 256>>>(in, out, other, 64);
        check();
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// sync-each-operation. A Jacobi solver of 160 sweeps over 2 M cells (~6 us each); a macro for "safety" synchronises the stream after each launch (~8 us lost each); the twin checks launches only, and waits at the end.
__global__ void jacobi(const float *__restrict__ u, float *__restrict__ next, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x > 0 && y > 0 && x < w - 1 && y < h - 1) next[y * w + x] = 0.25f * (u[y * w + x - 1] + u[y * w + x + 1] + u[(y - 1) * w + x] + u[(y + 1) * w + x]);
}
template <bool waits> struct Guard {
    cudaStream_t stream;
    void operator()() const {
        CHECK(cudaGetLastError());
        if (waits) CHECK(cudaStreamSynchronize(stream));
    }
};
PAIR(sweeping, "drum-skins") {
    const int w = 2048, h = 1024;
    Lane lane;
    std::array<float *, 2> u = {on_device(w * h), on_device(w * h)};
    Guard<ill> guard{lane.stream};
    return [=](int) {
        for (int k = 0; k < 160; ++k) {
            jacobi<<<dim3(w / 256, h), 256, 0, lane.stream>>>(u[k % 2], u[1 - k % 2], w, h);
            guard();
        }
        CHECK(cudaStreamSynchronize(lane.stream));
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// scalar-reads. Bisection for a level that 30 % of 4 M values exceed: 40 rounds, each reads a count of 4 B (~15 us) to choose the half; a round's kernel is ~6 us. The twin chooses on the GPU.
struct Bracket {
    float low, high;
    unsigned above;
};
__global__ void counted(const float *__restrict__ values, int n, Bracket *b) {
    float level = 0.5f * (b->low + b->high);
    unsigned mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += values[i] > level;
    mine = __reduce_add_sync(~0u, mine);
    if (threadIdx.x % 32 == 0 && mine) atomicAdd(&b->above, mine);
}
__global__ void halved(Bracket *b, unsigned wanted) {
    float level = 0.5f * (b->low + b->high);
    (b->above > wanted ? b->low : b->high) = level;
    b->above = 0;
}
__global__ void bracketed(Bracket *b, float low, float high) { *b = {low, high, 0}; }
PAIR(levels, "quarry-blasts") {
    const int n = 4 * M;
    float *values = on_device(n), *start = pinned(n);
    CHECK(cudaMemcpy(values, start, n * sizeof(float), cudaMemcpyHostToDevice));
    Bracket *b = (Bracket *)on_device(4), *seen = (Bracket *)pinned(4);
    return [=](int) {
        const unsigned wanted = n * 3u / 10;
        float low = 0, high = 1;
        bracketed<<<1, 1>>>(b, low, high);
        for (int round = 0; round < 40; ++round) {
            counted<<<264, 512>>>(values, n, b);
            if (ill) {
                CHECK(cudaMemcpyAsync(&seen->above, &b->above, sizeof(unsigned), cudaMemcpyDeviceToHost, 0));
                CHECK(cudaStreamSynchronize(0));
                (seen->above > wanted ? low : high) = 0.5f * (low + high);
                bracketed<<<1, 1>>>(b, low, high);
            } else {
                halved<<<1, 1>>>(b, wanted);
            }
        }
        check();
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// pageable-copies. Radiographs of 48 MB from a std::vector (through the driver's staging buffer: ~6 to 10 GB/s: 5 ms), results of 12 MB back; the twin's vector has an allocator of pinned memory (~50 GB/s: 1.2 ms).
template <class T> struct PinnedAllocator {
    using value_type = T;
    T *allocate(size_t n) {
        void *data;
        CHECK(cudaMallocHost(&data, n * sizeof(T)));
        return (T *)data;
    }
    void deallocate(T *data, size_t) { cudaFreeHost(data); }
    bool operator==(const PinnedAllocator &) const { return true; }
    bool operator!=(const PinnedAllocator &) const { return false; }
};
__global__ void binned(const float4 *__restrict__ in, float *__restrict__ out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i].x + in[i].y + in[i].z + in[i].w;
}
PAIR(radiographs, "crates-at-customs") {
    using Allocator = std::conditional_t<ill, std::allocator<float>, PinnedAllocator<float>>;
    const int n = 12 * M;
    auto *picture = new std::vector<float, Allocator>(n, 0.5f), *small = new std::vector<float, Allocator>(n / 4);
    float *in = on_device(n), *out = on_device(n / 4), *more = on_device(n / 4);
    return [=](int) {
        CHECK(cudaMemcpyAsync(in, picture->data(), n * sizeof(float), cudaMemcpyHostToDevice, 0));
        binned<<<n / 4 / 256, 256>>>((float4 *)in, out, n / 4);
        relaxed<<<1056, 256>>>(out, more, n / 4, 2000);
        CHECK(cudaMemcpyAsync(small->data(), more, n / 4 * sizeof(float), cudaMemcpyDeviceToHost, 0));
        CHECK(cudaStreamSynchronize(0));
        check();
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// no-copy-overlap. Eight panels of 16 MB (pinned; 0.3 ms each) through a kernel of ~0.35 ms and back (4 MB), all in one stream: 8 x 0.75 = 6 ms; the twin has two buffers and streams: ~3.2 ms.
PAIR(panels, "tapestries") {
    const int n = 4 * M, panels = 8;
    float *host = pinned(n * panels), *back = pinned(M * panels);
    std::vector<Lane> lanes(2);
    std::vector<float *> in = {on_device(n), on_device(n)}, out = {on_device(n), on_device(n)};
    return [=](int) {
        for (int p = 0; p < panels; ++p) {
            int k = ill ? 0 : p % 2;
            cudaStream_t s = lanes[k].stream;
            CHECK(cudaMemcpyAsync(in[k], host + (size_t)p * n, n * sizeof(float), cudaMemcpyHostToDevice, s));
            relaxed<<<1056, 256, 0, s>>>(in[k], out[k], n, 1100);
            CHECK(cudaMemcpyAsync(back + (size_t)p * M, out[k], M * sizeof(float), cudaMemcpyDeviceToHost, s));
        }
        for (auto &lane : lanes) CHECK(cudaStreamSynchronize(lane.stream));
        check();
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// small-copies. 640 tracks' parameters of 192 B lie in objects of the host: a copy each (pinned: ~2.5 us of calls and ~2 us on the GPU: ~1.6 ms); the twin packs them into one array (20 us), one copy. Kernel: ~0.3 ms.
struct Track {
    std::array<float, 48> gains;
    std::string name;
    int kind;
};
__global__ void mixed(const float *__restrict__ gains, float *__restrict__ out, int n, int tracks) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int t = 0; t < tracks; ++t) sum = fmaf(gains[t * 48 + i % 48], 0.5f, sum);
    out[i] = sum;
}
PAIR(gains, "brass-band") {
    const int count = 640, n = M;
    Track *tracks = nullptr;
    CHECK(cudaMallocHost((void **)&tracks, count * sizeof(Track)));
    for (int t = 0; t < count; ++t) {
        new (tracks + t) Track{{}, "track " + std::to_string(t), t % 7};
        tracks[t].gains.fill(0.01f * t);
    }
    float *packed = pinned(count * 48), *there = on_device(count * 48), *out = on_device(n);
    return [=](int) {
        if (ill) {
            for (int t = 0; t < count; ++t) CHECK(cudaMemcpyAsync(there + t * 48, tracks[t].gains.data(), 192, cudaMemcpyHostToDevice, 0));
        } else {
            for (int t = 0; t < count; ++t) memcpy(packed + t * 48, tracks[t].gains.data(), 192);
            CHECK(cudaMemcpyAsync(there, packed, count * 192, cudaMemcpyHostToDevice, 0));
        }
        mixed<<<n / 256, 256>>>(there, out, n, count);
        CHECK(cudaStreamSynchronize(0));
        check();
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// allocation-in-loop. A hash join's temporary tables: each of 12 partitions gets two buffers (64 MB, 16 MB) by a small RAII class: cudaMalloc and cudaFree (which waits) ~0.15 to 0.3 ms a partition beside ~0.1 ms of
// work; the twin keeps the class, from a pool made once.
struct Arena {
    char *base = nullptr;
    size_t used = 0;
};
template <bool ill> struct Temporary {
    float *data = nullptr;
    Arena &arena;
    size_t before;
    Temporary(Arena &from, size_t n) : arena(from), before(from.used) {
        if (ill)
            CHECK(cudaMalloc(&data, n * sizeof(float)));
        else
            data = (float *)(arena.base + arena.used), arena.used += n * sizeof(float);
    }
    ~Temporary() {
        if (ill)
            cudaFree(data);
        else
            arena.used = before;
    }
};
PAIR(partitions, "parish-registers") {
    const int n = 16 * M;
    auto *arena = new Arena;
    if (!ill) CHECK(cudaMalloc(&arena->base, (size_t)n * 5 + (64 << 20)));
    float *in = on_device(n), *out = on_device(n / 4);
    return [=](int) {
        for (int p = 0; p < 12; ++p) {
            Temporary<ill> keys(*arena, n), places(*arena, n / 4);
            relaxed<<<1056, 256>>>(in, keys.data, n, 20);
            binned<<<n / 4 / 256, 256>>>((float4 *)keys.data, places.data, n / 4);
            relaxed<<<1056, 256>>>(places.data, out, n / 4, 20);
        }
        CHECK(cudaDeviceSynchronize());
        check();
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// page-faults. A city model of 16 MB in managed memory; each step the host moves a few of its values in every page (a clock), the GPU reads and writes all: 16 MB go there and back by faults: ~5 to 15 ms; the twin
// keeps the clock's values in a pinned array (4 B a page of 4 KB), that is copied (16 KB), and the model on the GPU.
__global__ void shaded(float *model, const float *clock, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float m = i % 1024 == 0 && clock ? clock[i / 1024] : model[i];
        model[i] = fmaf(m, 0.99f, 0.01f);
    }
}
PAIR(city, "shadows-of-towers") {
    const int n = 4 * M, pages = n / 1024;
    float *model, *clock = pinned(pages), *there = on_device(pages);
    if (ill) {
        CHECK(cudaMallocManaged(&model, n * sizeof(float)));
        for (int i = 0; i < n; ++i) model[i] = 0.5f;
    } else {
        model = on_device(n);
    }
    return [=](int index) {
        if (ill) {
            for (int p = 0; p < pages; ++p) model[(size_t)p * 1024] = 0.001f * (p + index);
        } else {
            for (int p = 0; p < pages; ++p) clock[p] = 0.001f * (p + index);
            CHECK(cudaMemcpyAsync(there, clock, pages * sizeof(float), cudaMemcpyHostToDevice, 0));
        }
        for (int k = 0; k < 4; ++k) shaded<<<1056, 256>>>(model, k || ill ? nullptr : there, n);
        CHECK(cudaStreamSynchronize(0));
        check();
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// default-stream. Six instruments, a blocking stream each, with kernels of 16 blocks (~120 us); a small "meter" kernel is launched without a stream after each: all wait for all. The twin's meters are in the stream of their
// instrument. 6 x 8 x 125 us = 6 ms against ~1.1 ms.
__global__ void metered(const float *in, float *meter) {
    float top = 0;
    for (int i = threadIdx.x; i < 1024; i += 32) top = fmaxf(top, in[i]);
    unsigned all = __reduce_max_sync(~0u, __float_as_uint(top));
    if (threadIdx.x == 0) *meter = __uint_as_float(all);
}
PAIR(instruments, "gamelan") {
    const int instruments = 6, n = 16 * 256;
    auto lanes = streams(instruments, cudaStreamDefault);
    std::vector<float *> in, out;
    for (int k = 0; k < instruments; ++k) in.push_back(on_device(n)), out.push_back(on_device(n));
    float *meters = on_device(instruments);
    return [=](int) {
        for (int bar = 0; bar < 8; ++bar)
            for (int k = 0; k < instruments; ++k) {
                relaxed<<<16, 256, 0, lanes[k]>>>(in[k], out[k], n, 20000);
                metered<<<1, 32, 0, ill ? 0 : lanes[k]>>>(out[k], meters + k);
            }
        CHECK(cudaDeviceSynchronize());
        check();
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// kernels-not-concurrent. Ten harbours' waves, independent, 12 kernels each of 10 blocks (~60 us): one stream: 120 x 62 us = 7.4 ms; the twin has a stream a harbour: ~0.8 ms.
PAIR(harbours, "harbours-in-a-storm") {
    const int harbours = 10, n = 10 * 256;
    std::vector<Lane> lanes(harbours);
    std::vector<float *> in, out;
    for (int k = 0; k < harbours; ++k) in.push_back(on_device(n)), out.push_back(on_device(n));
    return [=](int) {
        for (int s = 0; s < 12; ++s)
            for (int k = 0; k < harbours; ++k) {
                cudaStream_t stream = lanes[ill ? 0 : k].stream;
                relaxed<<<10, 256, 0, stream>>>(s % 2 ? out[k] : in[k], s % 2 ? in[k] : out[k], n, 9000);
            }
        for (auto &lane : lanes) CHECK(cudaStreamSynchronize(lane.stream));
        check();
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// file-io. A simulation in the loop writes its state (24 MB) to a file after each step and flushes it (write and fdatasync: ~10 to 30 ms); the twin keeps it in a ring of pinned memory and writes at the end of the program only.
PAIR(snapshots, "dunes-on-the-move") {
    const int n = 6 * M;
    static Removed removed{scratch_folder(ill ? "dunes" : "dunes-kept")};
    int file = open((removed.path + "/state").c_str(), O_CREAT | O_RDWR, 0600);
    if (file < 0) exit(1);
    float *state = on_device(n), *next = on_device(n), *kept = pinned(n);
    return [=](int) {
        for (int k = 0; k < 6; ++k) relaxed<<<1056, 256>>>(k % 2 ? next : state, k % 2 ? state : next, n, 500);
        CHECK(cudaMemcpyAsync(kept, state, n * sizeof(float), cudaMemcpyDeviceToHost, 0));
        CHECK(cudaStreamSynchronize(0));
        check();
        if (ill) {
            if (pwrite(file, kept, n * sizeof(float), 0) < 0) exit(1);
            fdatasync(file);
        }
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// logging. A market's matching engine logs each of 3000 fills of a step as text, with endl (a write each: ~2 to 3 us: 7 ms); the twin keeps counts and writes a line a step. The GPU: ~1 ms.
template <bool every> struct Journal {
    std::ofstream file;
    long fills = 0;
    void fill(int index, int k, float price) {
        ++fills;
        if (every) file << "step " << index << " fill " << k << " at " << price << std::endl;
    }
    void close_step(int index) { file << "step " << index << ": " << fills << " fills" << std::endl; }
};
PAIR(fills, "tulip-exchange") {
    const int n = 4 * M, count = 3000;
    static Removed removed{scratch_folder(ill ? "tulips" : "tulips-counted")};
    auto *journal = new Journal<ill>{std::ofstream(removed.path + "/fills.txt")};
    float *orders = on_device(n), *matched = on_device(n), *prices = pinned(count);
    return [=](int index) {
        relaxed<<<1056, 256>>>(orders, matched, n, 3500);
        CHECK(cudaMemcpyAsync(prices, matched, count * sizeof(float), cudaMemcpyDeviceToHost, 0));
        CHECK(cudaStreamSynchronize(0));
        check();
        for (int k = 0; k < count; ++k) journal->fill(index, k, prices[k]);
        journal->close_step(index);
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// Healthy: overlapped. Three slots of 8 MB: pinned copies in, a kernel of ~0.35 ms, copies out, in three streams: the GPU is busy all the time.
CASE(sky, "plates-of-the-sky") {
    const int n = 2 * M, plates = 12;
    float *host = pinned((size_t)n * 4), *back = pinned((size_t)n * 4);
    std::vector<Lane> lanes(3);
    std::vector<float *> in, out;
    for (int k = 0; k < 3; ++k) in.push_back(on_device(n)), out.push_back(on_device(n));
    return [=](int) {
        for (int p = 0; p < plates; ++p) {
            int k = p % 3;
            cudaStream_t s = lanes[k].stream;
            CHECK(cudaMemcpyAsync(in[k], host + (size_t)(p % 4) * n, n * sizeof(float), cudaMemcpyHostToDevice, s));
            relaxed<<<1056, 256, 0, s>>>(in[k], out[k], n, 2600);
            CHECK(cudaMemcpyAsync(back + (size_t)(p % 4) * n, out[k], n * sizeof(float), cudaMemcpyDeviceToHost, s));
        }
        for (auto &lane : lanes) CHECK(cudaStreamSynchronize(lane.stream));
        check();
    };
}

// Healthy: graphs. 300 small kernels of a filter cascade, in a graph made once; each waits for the one before.
CASE(cascade, "weirs-in-a-river") {
    const int n = 128 * 1024;
    float *a = on_device(n), *b = on_device(n);
    Lane lane;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CHECK(cudaStreamBeginCapture(lane.stream, cudaStreamCaptureModeThreadLocal));
    for (int k = 0; k < 300; ++k) relaxed<<<n / 256, 256, 0, lane.stream>>>(k % 2 ? b : a, k % 2 ? a : b, n, 300);
    CHECK(cudaStreamEndCapture(lane.stream, &graph));
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    return [=](int) {
        CHECK(cudaGraphLaunch(ready, lane.stream));
        CHECK(cudaGraphLaunch(ready, lane.stream));
        CHECK(cudaStreamSynchronize(lane.stream));
    };
}

// Healthy: gpu-busy. Kernels of 0.3 to 0.6 ms end to end; a host that allocates, logs a line and reads a number a step, while the GPU has work queued.
CASE(ice, "ice-on-a-lake") {
    const int n = 16 * M;
    float *a = on_device(n), *b = on_device(n), *seen = pinned(64);
    Lane lane;
    cudaEvent_t done = lane.done;
    auto *notes = new std::vector<std::string>;
    return [=](int index) {
        for (int k = 0; k < 10; ++k) relaxed<<<1056, 256, 0, lane.stream>>>(k % 2 ? b : a, k % 2 ? a : b, n, 200 + 20 * k);
        if (index > 0) CHECK(cudaEventSynchronize(done)); // of the step before
        notes->push_back("step " + std::to_string(index) + " thickness " + std::to_string(seen[0]));
        CHECK(cudaMemcpyAsync(seen, a, 256, cudaMemcpyDeviceToHost, lane.stream));
        CHECK(cudaEventRecord(done, lane.stream));
        check();
    };
}

int main(int argc, char **argv) { return run_cases(argc, argv); }
