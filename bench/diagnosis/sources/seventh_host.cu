// A seventh set of programs whose host side is ill (or not): one planted illness a case; NAME.cured is its twin.
#include "host_harness.h"
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

// ------------------------------------------------------------------------------------------------------------------
// Kernels that several cases use. `work` sets the time: 2 FMAs a unit and element.
__global__ void relax(float *data, size_t n, int work, float target) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        float a = data[i], b = a * 0.5f;
#pragma unroll 4
        for (int k = 0; k < work; ++k) a = fmaf(target - a, 0.01f, a), b = fmaf(b, 0.99f, 0.001f);
        data[i] = a + 1e-3f * b;
    }
}
__global__ void weigh(const float *__restrict__ in, float *__restrict__ out, size_t n, int work) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        float a = in[i], b = 1.f;
#pragma unroll 4
        for (int k = 0; k < work; ++k) a = fmaf(a, 0.999f, 1e-3f), b = fmaf(b, 0.998f, a);
        out[i] = a + b;
    }
}
__global__ void dot(const float *__restrict__ a, const float *__restrict__ b, size_t n, float *sum) {
    float mine = 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) mine = fmaf(a[i], b[i], mine);
    for (int o = 16; o; o /= 2) mine += __shfl_down_sync(~0u, mine, o);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}
static void ok() { CHECK(cudaGetLastError()); }
struct Event {
    cudaEvent_t event;
    Event() { CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming)); }
    void after(cudaStream_t stream) const { CHECK(cudaEventRecord(event, stream)); }
    void before(cudaStream_t stream) const { CHECK(cudaStreamWaitEvent(stream, event, 0)); }
};

// ------------------------------------------------------------------------------------------------------------------
// launch-bound. Molecular dynamics of 512 atoms: four small kernels a time step (~2 us each, launched at ~2.3 us and more), 500 time steps: 5 ms;
// the twin does all time steps in a kernel of one block: 32 pairs a thread and two barriers, ~1.5 us a time step.
struct Box {
    float4 *x, *v, *f;
};
constexpr int atoms = 512;
__device__ inline void half_kick(Box b, int i, float dt) {
    float4 v = b.v[i], f = b.f[i];
    v.x = fmaf(f.x, dt, v.x), v.y = fmaf(f.y, dt, v.y), v.z = fmaf(f.z, dt, v.z);
    b.v[i] = v;
}
__device__ inline void drift(Box b, int i, float dt) {
    float4 x = b.x[i], v = b.v[i];
    x.x = fmaf(v.x, dt, x.x), x.y = fmaf(v.y, dt, x.y), x.z = fmaf(v.z, dt, x.z);
    b.x[i] = x;
}
// A neighbourhood of 32 along the chain: bonds and repulsion.
__device__ inline void force(Box b, int i) {
    float4 me = b.x[i], sum = make_float4(0, 0, 0, 0);
    for (int k = 1; k <= 32; ++k) {
        float4 you = b.x[(i + k) & (atoms - 1)];
        float dx = me.x - you.x, dy = me.y - you.y, dz = me.z - you.z, r2 = dx * dx + dy * dy + dz * dz + 0.1f, s = __fdividef(1e-3f, r2 * r2);
        sum.x += s * dx, sum.y += s * dy, sum.z += s * dz;
    }
    b.f[i] = sum;
}
__global__ void kick_kernel(Box b, float dt) { half_kick(b, blockIdx.x * blockDim.x + threadIdx.x, dt); }
__global__ void drift_kernel(Box b, float dt) { drift(b, blockIdx.x * blockDim.x + threadIdx.x, dt); }
__global__ void force_kernel(Box b) { force(b, blockIdx.x * blockDim.x + threadIdx.x); }
__global__ void all_steps(Box b, float dt, int steps) {
    for (int t = 0; t < steps; ++t) {
        half_kick(b, threadIdx.x, dt), drift(b, threadIdx.x, dt);
        __syncthreads();
        force(b, threadIdx.x), half_kick(b, threadIdx.x, dt);
        __syncthreads();
    }
}
template <bool fused> static Step peptide() {
    Box box{(float4 *)on_device(atoms * 4), (float4 *)on_device(atoms * 4), (float4 *)on_device(atoms * 4)};
    std::vector<float> start(atoms * 4);
    for (int i = 0; i < atoms * 4; ++i) start[i] = (i * 37 % 101) * 0.05f;
    CHECK(cudaMemcpy(box.x, start.data(), atoms * 16, cudaMemcpyHostToDevice));
    float *solvent = on_device(8 * M);
    return [=](int) {
        const float dt = 1e-3f;
        if (fused) all_steps<<<1, atoms>>>(box, dt, 500), ok();
        else
            for (int t = 0; t < 500; ++t) {
                kick_kernel<<<4, 128>>>(box, dt), drift_kernel<<<4, 128>>>(box, dt);
                force_kernel<<<4, 128>>>(box), kick_kernel<<<4, 128>>>(box, dt), ok();
            }
        relax<<<1056, 256>>>(solvent, 8 * M, 100, 0.3f), ok();
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(peptide_ill, "peptide-in-water") { return peptide<false>(); }
CASE(peptide_cured, "peptide-in-water.cured") { return peptide<true>(); }

// ------------------------------------------------------------------------------------------------------------------
// sync-each-operation. A pipeline of filters for an antenna's image: a class waits for its stream in its destructor (a "scope"), 240 times a step; kernels of ~12 us.
struct Scope {
    cudaStream_t stream;
    bool waits;
    ~Scope() {
        if (waits) CHECK(cudaStreamSynchronize(stream));
    }
};
template <bool waits> static Step bands() {
    float *image = on_device(2 * M), *other = on_device(2 * M);
    auto s = streams(1, cudaStreamNonBlocking)[0];
    return [=](int) {
        for (int k = 0; k < 120; ++k) {
            {
                Scope scope{s, waits};
                weigh<<<1056, 256, 0, s>>>(image, other, 2 * M, 40), ok();
            }
            {
                Scope scope{s, waits};
                weigh<<<1056, 256, 0, s>>>(other, image, 2 * M, 40), ok();
            }
        }
        CHECK(cudaStreamSynchronize(s));
    };
}
CASE(bands_ill, "clean-beams") { return bands<true>(); }
CASE(bands_cured, "clean-beams.cured") { return bands<false>(); }

// ------------------------------------------------------------------------------------------------------------------
// scalar-reads. Conjugate gradients for a drum's skin: both products are read by the host each iteration (4 bytes, waited for), to divide them there; the twin
// leaves them on the GPU. 120 iterations; kernels of ~5 us, a read ~12 us.
__global__ void skin(const float *__restrict__ p, float *__restrict__ q, int w, int h) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, at = y * w + x;
    float here = p[at];
    q[at] = 4.1f * here - (x ? p[at - 1] : 0.f) - (x < w - 1 ? p[at + 1] : 0.f) - (y ? p[at - w] : 0.f) - (y < h - 1 ? p[at + w] : 0.f);
}
__global__ void update_host(float *x, float *r, const float *p, const float *q, int n, float alpha) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = fmaf(alpha, p[i], x[i]), r[i] = fmaf(-alpha, q[i], r[i]);
}
__global__ void update_device(float *x, float *r, const float *p, const float *q, int n, const float *rr, const float *pq) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float alpha = *rr / (*pq + 1e-20f);
    if (i < n) x[i] = fmaf(alpha, p[i], x[i]), r[i] = fmaf(-alpha, q[i], r[i]);
}
__global__ void direction_host(float *p, const float *r, int n, float beta) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] = fmaf(beta, p[i], r[i]);
}
__global__ void direction_device(float *p, const float *r, int n, const float *now, const float *before) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] = fmaf(*now / (*before + 1e-20f), p[i], r[i]);
}
__global__ void pluck(float *x, float *r, float *p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = 0, r[i] = p[i] = (i % 1013) * 1e-3f;
}
template <bool by_host> static Step drum() {
    const int w = 1024, h = 512, n = w * h, most = 120;
    float *x = on_device(n), *r = on_device(n), *p = on_device(n), *q = on_device(n), *sums = on_device(2 * most + 2), *shown = pinned(2);
    return [=](int) {
        auto s = (cudaStream_t)0;
        CHECK(cudaMemsetAsync(sums, 0, (2 * most + 2) * sizeof(float), s));
        pluck<<<n / 256, 256>>>(x, r, p, n), ok();
        dot<<<264, 256>>>(r, r, n, sums), ok();
        float rr = 0;
        if (by_host) CHECK(cudaMemcpy(&rr, sums, 4, cudaMemcpyDeviceToHost));
        for (int k = 0; k < most; ++k) {
            float *now = sums + 2 * k, *pq = now + 1, *next = now + 2;
            skin<<<dim3(w / 32, h / 8), dim3(32, 8)>>>(p, q, w, h), ok();
            dot<<<264, 256>>>(p, q, n, pq), ok();
            if (by_host) {
                CHECK(cudaMemcpy(shown, pq, 4, cudaMemcpyDeviceToHost));
                update_host<<<n / 256, 256>>>(x, r, p, q, n, rr / (shown[0] + 1e-20f)), ok();
            } else update_device<<<n / 256, 256>>>(x, r, p, q, n, now, pq), ok();
            dot<<<264, 256>>>(r, r, n, next), ok();
            if (by_host) {
                CHECK(cudaMemcpy(shown + 1, next, 4, cudaMemcpyDeviceToHost));
                direction_host<<<n / 256, 256>>>(p, r, n, shown[1] / (rr + 1e-20f)), ok();
                rr = shown[1];
            } else direction_device<<<n / 256, 256>>>(p, r, n, next, now), ok();
        }
        CHECK(cudaMemcpy(shown, sums + 2 * most, 4, cudaMemcpyDeviceToHost));
    };
}
CASE(drum_ill, "skin-of-a-drum") { return drum<true>(); }
CASE(drum_cured, "skin-of-a-drum.cured") { return drum<false>(); }

// ------------------------------------------------------------------------------------------------------------------
// pageable-copies. Projections of a tomograph: 64 MB to the GPU, 32 MB of the volume back, through malloc's memory (~6 to 12 GB/s: 10 ms), against cudaMallocHost's (~50: 2 ms);
// kernels: 64 MB x 300 FMA pairs ~ 0.7 ms.
static float *host_memory(size_t n, bool locked) {
    if (locked) return pinned(n);
    float *data = (float *)malloc(n * sizeof(float));
    for (size_t i = 0; i < n; ++i) data[i] = 1e-3f * (i % 1000);
    return data;
}
template <bool locked> static Step tomograph() {
    const size_t n = 16 * M, back = 8 * M;
    float *views = host_memory(n, locked), *result = host_memory(back, locked), *on_gpu = on_device(n), *volume = on_device(n);
    return [=](int) {
        CHECK(cudaMemcpyAsync(on_gpu, views, n * 4, cudaMemcpyHostToDevice, 0));
        weigh<<<2112, 256>>>(on_gpu, volume, n, 300), ok();
        relax<<<2112, 256>>>(volume, n, 300, 0.5f), ok();
        CHECK(cudaMemcpyAsync(result, volume, back * 4, cudaMemcpyDeviceToHost, 0));
        CHECK(cudaStreamSynchronize(0));
    };
}
CASE(tomograph_ill, "tomograph-views") { return tomograph<false>(); }
CASE(tomograph_cured, "tomograph-views.cured") { return tomograph<true>(); }

// ------------------------------------------------------------------------------------------------------------------
// no-copy-overlap. Logs of eight wells, 32 MB each way (0.65 ms each at ~50 GB/s) and a kernel of ~1 ms each, one after the other in a stream; the twin has a
// stream and buffer for each of three wells in turn: 8 x 2.3 ms against ~8 x 1 ms.
template <int lanes> static Step wells() {
    const size_t n = 8 * M;
    float *logs = pinned(8 * n / 2), *results = pinned(8 * n / 2);
    std::vector<float *> in, out;
    for (int k = 0; k < lanes; ++k) in.push_back(on_device(n)), out.push_back(on_device(n));
    auto all = streams(lanes, cudaStreamNonBlocking);
    return [=](int) {
        for (int well = 0; well < 8; ++well) {
            int k = well % lanes;
            float *from = logs + (well / 2) * n, *to = results + (well / 2) * n;
            CHECK(cudaMemcpyAsync(in[k], from, n * 4, cudaMemcpyHostToDevice, all[k]));
            weigh<<<1056, 256, 0, all[k]>>>(in[k], out[k], n, 900), ok();
            CHECK(cudaMemcpyAsync(to, out[k], n * 4, cudaMemcpyDeviceToHost, all[k]));
        }
        for (auto s : all) CHECK(cudaStreamSynchronize(s));
    };
}
CASE(wells_ill, "logs-of-wells") { return wells<1>(); }
CASE(wells_cured, "logs-of-wells.cured") { return wells<3>(); }

// ------------------------------------------------------------------------------------------------------------------
// small-copies. Strain gauges of 1200 blades: a copy of 2 KB each from a page-locked arena (~2.5 us each: 3 ms), against one of 2.4 MB (0.05 ms); a kernel of ~1.5 ms.
template <bool one> static Step blades() {
    const int count = 1200, each = 512;
    float *arena = pinned(count * each), *gauges = on_device(count * each), *model = on_device(16 * M);
    auto s = streams(1, cudaStreamNonBlocking)[0];
    return [=](int) {
        if (one) CHECK(cudaMemcpyAsync(gauges, arena, count * each * 4, cudaMemcpyHostToDevice, s));
        else
            for (int b = 0; b < count; ++b) CHECK(cudaMemcpyAsync(gauges + b * each, arena + b * each, each * 4, cudaMemcpyHostToDevice, s));
        relax<<<132, 256, 0, s>>>(gauges, count * each, 200, 0.2f), ok();
        relax<<<2112, 256, 0, s>>>(model, 16 * M, 500, 0.2f), ok();
        CHECK(cudaStreamSynchronize(s));
    };
}
CASE(blades_ill, "gauges-on-blades") { return blades<false>(); }
CASE(blades_cured, "gauges-on-blades.cured") { return blades<true>(); }

// ------------------------------------------------------------------------------------------------------------------
// allocation-in-loop. Tiles of a map from the air: a helper class takes its scratch memory (48 MB and 16 MB) anew for each of 24 tiles (cudaMalloc and cudaFree: ~0.2 ms and more a
// tile, and a wait); the twin keeps it. Kernels of ~0.1 ms.
struct Scratch {
    float *a = nullptr, *b = nullptr;
    bool own;
    explicit Scratch(const Scratch *kept) : own(!kept) {
        if (kept) a = kept->a, b = kept->b;
        else {
            CHECK(cudaMalloc(&a, 12 * M * sizeof(float)));
            CHECK(cudaMalloc(&b, 4 * M * sizeof(float)));
        }
    }
    Scratch(const Scratch &) = delete;
    ~Scratch() {
        if (!own) return;
        CHECK(cudaFree(a));
        CHECK(cudaFree(b));
    }
};
template <bool keeps> static Step aerial() {
    auto kept = keeps ? std::make_shared<Scratch>(nullptr) : nullptr;
    float *tile = on_device(4 * M), *map = on_device(4 * M);
    return [=](int) {
        for (int t = 0; t < 24; ++t) {
            Scratch scratch(kept.get());
            weigh<<<1056, 256>>>(tile, scratch.b, 4 * M, 60), ok();
            weigh<<<1056, 256>>>(scratch.b, scratch.a, 4 * M, 60), ok();
            weigh<<<1056, 256>>>(scratch.a, map, 4 * M, 60), ok();
        }
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(aerial_ill, "map-from-the-air") { return aerial<false>(); }
CASE(aerial_cured, "map-from-the-air.cured") { return aerial<true>(); }

// ------------------------------------------------------------------------------------------------------------------
// kernels-not-concurrent. Thirty estuaries, each a model of its own: six kernels of 12 blocks (~60 us) in one stream (30 x 6 x 60 us = 11 ms); the twin has ten streams.
__global__ void tide(float *level, int n, int work, float moon) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = level[i % n];
    for (int k = 0; k < work; ++k) a = fmaf(moon - a, 0.01f, a);
    level[i % n] = a;
}
template <int lanes> static Step estuaries() {
    const int n = 12 * 256;
    std::vector<float *> levels;
    for (int k = 0; k < 30; ++k) levels.push_back(on_device(n));
    auto all = streams(lanes, cudaStreamNonBlocking);
    return [=](int) {
        for (int hour = 0; hour < 6; ++hour)
            for (int k = 0; k < 30; ++k) tide<<<12, 256, 0, all[k % lanes]>>>(levels[k], n, 12000, 0.1f * hour), ok();
        for (auto s : all) CHECK(cudaStreamSynchronize(s));
    };
}
CASE(estuaries_ill, "thirty-estuaries") { return estuaries<1>(); }
CASE(estuaries_cured, "thirty-estuaries.cured") { return estuaries<10>(); }

// ------------------------------------------------------------------------------------------------------------------
// default-stream. Kilns, a stream each (12); a library's helper clears a counter in the legacy default stream before each firing, so blocking streams wait for one another.
// Kernels of 16 blocks (~90 us): 12 x 8 x 90 us = 9 ms in turn; the twin clears in the kiln's own stream.
static void clear_counter(float *counter, cudaStream_t stream) { CHECK(cudaMemsetAsync(counter, 0, sizeof(float), stream)); }
template <bool own> static Step kilns() {
    std::vector<float *> heat, counters;
    for (int k = 0; k < 12; ++k) heat.push_back(on_device(16 * 256)), counters.push_back(on_device(1));
    auto all = streams(12, cudaStreamDefault);
    return [=](int) {
        for (int firing = 0; firing < 8; ++firing)
            for (int k = 0; k < 12; ++k) {
                clear_counter(counters[k], own ? all[k] : 0);
                tide<<<16, 256, 0, all[k]>>>(heat[k], 16 * 256, 18000, 0.01f * firing), ok();
            }
        for (auto s : all) CHECK(cudaStreamSynchronize(s));
    };
}
CASE(kilns_ill, "potters-kilns") { return kilns<false>(); }
CASE(kilns_cured, "potters-kilns.cured") { return kilns<true>(); }

// ------------------------------------------------------------------------------------------------------------------
// file-io. Radiances of a satellite: a granule of 24 MB is read from a file (page cache: ~4 to 8 ms) before each step's kernels (~8 ms); the twin reads the next one in a
// thread meanwhile. Both copy from page-locked memory.
struct Granules {
    int file = -1;
    size_t bytes = 24 << 20;
    std::vector<float *> memory;
    Granules() {
        char path[] = "/tmp/granules-XXXXXX";
        file = mkstemp(path);
        unlink(path);
        std::vector<float> some(6 * M);
        for (int part = 0; part < 4; ++part) {
            for (size_t i = 0; i < some.size(); ++i) some[i] = 1e-3f * ((i + part) % 1000);
            if (pwrite(file, some.data(), bytes, part * bytes) != (ssize_t)bytes) exit(3);
        }
        for (int k = 0; k < 2; ++k) memory.push_back(pinned(6 * M));
    }
    void read_into(float *to, int part) const {
        for (size_t at = 0; at < bytes; at += 256 << 10)
            if (pread(file, (char *)to + at, 256 << 10, (part % 4) * bytes + at) <= 0) exit(3);
    }
};
template <bool ahead> static Step radiances() {
    auto granules = std::make_shared<Granules>();
    auto next = std::make_shared<std::future<void>>();
    float *scene = on_device(6 * M), *profile = on_device(6 * M);
    return [=](int index) {
        float *here = granules->memory[index % 2];
        if (!ahead || !next->valid()) granules->read_into(here, index);
        else next->get();
        if (ahead) *next = std::async(std::launch::async, [=] { granules->read_into(granules->memory[(index + 1) % 2], index + 1); });
        CHECK(cudaMemcpyAsync(scene, here, granules->bytes, cudaMemcpyHostToDevice, 0));
        for (int layer = 0; layer < 10; ++layer) weigh<<<1056, 256>>>(scene, profile, 6 * M, 1000), ok();
        CHECK(cudaStreamSynchronize(0));
    };
}
CASE(radiances_ill, "granules-of-radiance") { return radiances<false>(); }
CASE(radiances_cured, "granules-of-radiance.cured") { return radiances<true>(); }

// ------------------------------------------------------------------------------------------------------------------
// logging. Bees at a hive's door: after each step a line for each of 2500 bees is written to a log, and flushed (~1.5 us and more each); the twin writes their mean. Kernels: ~3 ms.
template <bool verbose> static Step hive() {
    const int bees = 2500;
    float *flights = on_device(24 * M), *seen = pinned(bees);
    FILE *log = fopen("/tmp/hive-seventh.log", "w");
    return [=](int index) {
        relax<<<2112, 256>>>(flights, 24 * M, 1500, 0.7f), ok();
        CHECK(cudaMemcpyAsync(seen, flights, bees * 4, cudaMemcpyDeviceToHost, 0));
        CHECK(cudaStreamSynchronize(0));
        double mean = 0;
        for (int b = 0; b < bees; ++b) {
            mean += seen[b] / bees;
            if (verbose) fprintf(log, "step %d bee %d: weight of load %.6f\n", index, b, seen[b]), fflush(log);
        }
        fprintf(log, "step %d mean %.6f\n", index, mean), fflush(log);
        if (index % 16 == 15) rewind(log);
    };
}
CASE(hive_ill, "door-of-a-hive") { return hive<true>(); }
CASE(hive_cured, "door-of-a-hive.cured") { return hive<false>(); }

// ==================================================================================================================
// Healthy.

// graphs: 400 kernels of a microsecond or two a step, in a CUDA graph, one launch a step.
CASE(clockwork_well, "clockwork") {
    float *gears = on_device(64 << 10), *hands = on_device(64 << 10);
    auto s = streams(1, cudaStreamNonBlocking)[0];
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    for (int k = 0; k < 200; ++k) {
        weigh<<<132, 256, 0, s>>>(gears, hands, 64 << 10, 60);
        weigh<<<132, 256, 0, s>>>(hands, gears, 64 << 10, 60);
    }
    CHECK(cudaStreamEndCapture(s, &graph));
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    CHECK(cudaGraphUpload(ready, s));
    return [=](int index) {
        CHECK(cudaGraphLaunch(ready, s));
        if (index % 4 == 3) CHECK(cudaStreamSynchronize(s));
    };
}

// overlapped: frames of 24 MB come in and go out (0.5 ms each way) beside kernels of ~1.2 ms, three buffers; the host waits for the frame before the last.
CASE(aquarium_well, "aquarium-cameras") {
    const size_t n = 6 * M;
    float *from = pinned(n), *to = pinned(n);
    std::vector<float *> in, out;
    for (int k = 0; k < 3; ++k) in.push_back(on_device(n)), out.push_back(on_device(n));
    auto all = streams(3, cudaStreamNonBlocking);
    auto done = std::make_shared<std::vector<Event>>(3);
    return [=](int index) {
        for (int frame = 0; frame < 6; ++frame) {
            int k = frame % 3;
            CHECK(cudaEventSynchronize((*done)[k].event));
            CHECK(cudaMemcpyAsync(in[k], from, n * 4, cudaMemcpyHostToDevice, all[k]));
            weigh<<<1056, 256, 0, all[k]>>>(in[k], out[k], n, 2200), ok();
            CHECK(cudaMemcpyAsync(to, out[k], n * 4, cudaMemcpyDeviceToHost, all[k]));
            (*done)[k].after(all[k]);
        }
    };
}

// gpu-busy: the host reads a scalar and waits for it each step, and copies little things from pageable memory, but of the step before: the next kernels are queued.
CASE(mill_well, "water-mill") {
    float *wheel = on_device(32 * M), *pond = on_device(32 * M), *level = on_device(1), *shown = pinned(2);
    auto s = streams(1, cudaStreamNonBlocking)[0];
    auto read = std::make_shared<std::vector<Event>>(2);
    return [=](int index) {
        float rate = 0.1f + 1e-3f * (index % 7);
        CHECK(cudaMemcpyAsync(level, &rate, sizeof rate, cudaMemcpyHostToDevice, s));
        for (int k = 0; k < 3; ++k) relax<<<2112, 256, 0, s>>>(wheel, 32 * M, 700, rate), ok();
        dot<<<1056, 256, 0, s>>>(wheel, pond, 32 * M, level), ok();
        CHECK(cudaMemcpyAsync(shown + index % 2, level, 4, cudaMemcpyDeviceToHost, s));
        (*read)[index % 2].after(s);
        if (index) CHECK(cudaEventSynchronize((*read)[(index + 1) % 2].event)); // of the step before
    };
}

int main(int argc, char **argv) { return run_cases(argc, argv); }
