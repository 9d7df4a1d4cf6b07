// Programs whose illness is in the timeline: how the host drives the GPU. NAME.cured is the same work without it.
//
//   host list
//   host time STEPS CASE...    milliseconds a step by the host's clock, after three steps to warm up
//   host run STEPS CASE        the same, once, to be traced; DIAGNOSIS_LOCK: a file that only one program at a time holds
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <fcntl.h>
#include <functional>
#include <map>
#include <mutex>
#include <nvtx3/nvToolsExt.h>
#include <string>
#include <sys/file.h>
#include <thread>
#include <unistd.h>
#include <vector>

#define MILLION (1 << 20)
#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t status = (call);                                                                                   \
        if (status != cudaSuccess) {                                                                                   \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status));                            \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
using Step = std::function<void(int)>;
static std::map<std::string, std::function<Step()>> cases;
#define CASE(id, name)                                                                                                 \
    static Step id();                                                                                                  \
    static bool id##_listed = (cases[name] = id, true);                                                                \
    static Step id()

static std::string folder() { return getenv("DIAGNOSIS_FILES") ? getenv("DIAGNOSIS_FILES") : "."; }

__global__ void touch(float *data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] += 1;
}
__global__ void update(float *data, size_t n, int rounds) {  // some 10 us a round for 16 MB
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        float x = data[i];
        for (int r = 0; r < rounds; ++r) x = fmaf(x, 0.99f, 0.01f);
        data[i] = x;
    }
}
__global__ void solve(float *data, int rounds) {  // a block's own work, so long as rounds says
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = data[i];
    for (int r = 0; r < rounds; ++r) x = fmaf(x, 0.99f, 0.01f);
    data[i] = x;
}
__global__ void apply_stencil(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) out[i] = 0.5f * in[i] + 0.25f * (in[i - 1] + in[i + 1]);
}
__global__ void dot(const float *a, const float *b, float *sum, int n) {
    float own = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) own += a[i] * b[i];
    for (int step = 16; step; step /= 2) own += __shfl_down_sync(~0u, own, step);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, own);
}
__global__ void axpy(const float *x, float *y, const float *sum, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaf(1e-6f * *sum, x[i], y[i]);
}

static float *device(size_t n) {
    void *data;
    CHECK(cudaMalloc(&data, n * sizeof(float)));
    CHECK(cudaMemset(data, 0, n * sizeof(float)));
    return (float *)data;
}
static float *pinned(size_t n) {
    void *data;
    CHECK(cudaMallocHost(&data, n * sizeof(float)));
    memset(data, 0, n * sizeof(float));
    return (float *)data;
}
static float *pageable(size_t n) { return (float *)memset(malloc(n * sizeof(float)), 0, n * sizeof(float)); }
static cudaStream_t stream(unsigned flags = cudaStreamNonBlocking) {
    cudaStream_t made;
    CHECK(cudaStreamCreateWithFlags(&made, flags));
    return made;
}
static std::vector<cudaStream_t> streams(int count, unsigned flags = cudaStreamNonBlocking) {
    std::vector<cudaStream_t> all;
    for (int i = 0; i < count; ++i) all.push_back(stream(flags));
    return all;
}

// ---- launches --------------------------------------------------------------------------------------------------------

CASE(tiny_ill, "tiny-kernels") {
    float *data = device(MILLION);
    return [=](int) {
        for (int k = 0; k < 100; ++k) touch<<<8, 128>>>(data, 1024);
        CHECK(cudaDeviceSynchronize());
    };
}
static cudaGraphExec_t graph_of(const std::function<void(cudaStream_t)> &work, cudaStream_t s) {
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    work(s);
    CHECK(cudaStreamEndCapture(s, &graph));
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    return ready;
}
CASE(tiny_cured, "tiny-kernels.cured") {
    float *data = device(MILLION);
    cudaStream_t s = stream();
    cudaGraphExec_t graph = graph_of([=](cudaStream_t t) { for (int k = 0; k < 100; ++k) touch<<<8, 128, 0, t>>>(data, 1024); }, s);
    return [=](int) {
        CHECK(cudaGraphLaunch(graph, s));
        CHECK(cudaStreamSynchronize(s));
    };
}

static void solver_step(float *a, float *b, float *c, float *sum, int n, bool wait, cudaStream_t s) {
    for (int k = 0; k < 12; ++k) {
        apply_stencil<<<n / 256, 256, 0, s>>>(a, b, n);
        if (wait) CHECK(cudaDeviceSynchronize());
        dot<<<132, 256, 0, s>>>(b, c, sum, n);
        if (wait) CHECK(cudaDeviceSynchronize());
        axpy<<<n / 256, 256, 0, s>>>(b, c, sum, n);
        if (wait) CHECK(cudaDeviceSynchronize());
    }
}
static Step solver(int n, bool wait, bool graphed) {
    float *a = device(n), *b = device(n), *c = device(n), *sum = device(1);
    cudaStream_t s = stream();
    if (graphed) {
        cudaGraphExec_t graph = graph_of([=](cudaStream_t t) { solver_step(a, b, c, sum, n, false, t); }, s);
        return [=](int) {
            CHECK(cudaGraphLaunch(graph, s));
            CHECK(cudaStreamSynchronize(s));
        };
    }
    return [=](int) {
        solver_step(a, b, c, sum, n, wait, s);
        CHECK(cudaStreamSynchronize(s));
    };
}
CASE(solver_small, "solver-small") { return solver(32768, false, false); }           // launch-bound
CASE(solver_small_cured, "solver-small.cured") { return solver(32768, false, true); }
CASE(solver_sync, "solver-sync") { return solver(2 * MILLION, true, false); }        // synchronises after each
CASE(solver_sync_cured, "solver-sync.cured") { return solver(2 * MILLION, false, false); }
CASE(solver_large, "solver-large") { return solver(32 * MILLION, false, false); }    // healthy

CASE(sync_ill, "sync-each") {
    float *data = device(4 * MILLION);
    return [=](int) {
        for (int k = 0; k < 40; ++k) {
            update<<<528, 256>>>(data, 2 * MILLION, 8);
            CHECK(cudaDeviceSynchronize());
        }
    };
}
CASE(sync_cured, "sync-each.cured") {
    float *data = device(4 * MILLION);
    return [=](int) {
        for (int k = 0; k < 40; ++k) update<<<528, 256>>>(data, 2 * MILLION, 8);
        CHECK(cudaDeviceSynchronize());
    };
}

CASE(serial_ill, "small-solves") {  // 12 independent kernels of 10 blocks
    float *data = device(MILLION);
    return [=](int) {
        for (int k = 0; k < 12; ++k) solve<<<10, 256>>>(data + k * 4096, 20000);
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(serial_cured, "small-solves.cured") {
    float *data = device(MILLION);
    auto all = streams(12);
    return [=](int) {
        for (int k = 0; k < 12; ++k) solve<<<10, 256, 0, all[k]>>>(data + k * 4096, 20000);
        CHECK(cudaDeviceSynchronize());
    };
}
static Step default_stream(bool cured, int kernels, int rounds) {  // a short kernel in the default stream between the streams'
    float *data = device(MILLION);
    auto all = streams(6, cured ? cudaStreamNonBlocking : cudaStreamDefault);
    return [=](int) {
        for (int k = 0; k < kernels; ++k) {
            solve<<<16, 256, 0, all[k % 6]>>>(data + k % 6 * 8192, rounds);
            touch<<<8, 128>>>(data + 65536, 1024);
        }
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(default_ill, "default-stream") { return default_stream(false, 18, 12000); }
CASE(default_cured, "default-stream.cured") { return default_stream(true, 18, 12000); }

static Step default_copies(bool cured) {  // batches in streams of their own, with counters cleared in the default stream
    float *data = device(8 * MILLION), *host = pinned(8 * MILLION), *sum = device(64);
    auto all = streams(4, cured ? cudaStreamNonBlocking : cudaStreamDefault);
    return [=](int) {
        for (int k = 0; k < 16; ++k) {
            cudaStream_t s = all[k % 4];
            float *part = data + k % 4 * 2 * MILLION;
            CHECK(cudaMemcpyAsync(part, host + k % 4 * 2 * MILLION, MILLION, cudaMemcpyHostToDevice, s));
            solve<<<24, 256, 0, s>>>(part, 6000);
            CHECK(cudaMemsetAsync(sum, 0, 64, cured ? s : 0));
        }
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(default_copies_ill, "default-stream-batches") { return default_copies(false); }
CASE(default_copies_cured, "default-stream-batches.cured") { return default_copies(true); }

// ---- copies and memory -----------------------------------------------------------------------------------------------

static Step copying(float *host, size_t n, int rounds, bool back) {
    float *data = device(n);
    return [=](int) {
        CHECK(cudaMemcpyAsync(data, host, n * 4, cudaMemcpyHostToDevice));
        update<<<1056, 256>>>(data, n, rounds);
        if (back) CHECK(cudaMemcpyAsync(host, data, n * 4, cudaMemcpyDeviceToHost));
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(pageable_ill, "images") { return copying(pageable(16 * MILLION), 16 * MILLION, 64, false); }
CASE(pageable_cured, "images.cured") { return copying(pinned(16 * MILLION), 16 * MILLION, 64, false); }

static Step chunks(int count, bool overlapped, bool back, int rounds, size_t n) {
    float *host = pinned(count * n), *data = device(count * n);
    auto all = streams(overlapped ? 4 : 1);
    return [=](int) {
        for (int k = 0; k < count; ++k) {
            cudaStream_t s = all[k % all.size()];
            CHECK(cudaMemcpyAsync(data + k * n, host + k * n, n * 4, cudaMemcpyHostToDevice, s));
            update<<<528, 256, 0, s>>>(data + k * n, n, rounds);
            if (back) CHECK(cudaMemcpyAsync(host + k * n, data + k * n, n * 4, cudaMemcpyDeviceToHost, s));
        }
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(overlap_ill, "chunks") { return chunks(8, false, true, 3000, 2 * MILLION); }
CASE(overlap_cured, "chunks.cured") { return chunks(8, true, true, 3000, 2 * MILLION); }

static Step frames(bool overlapped) {  // frames come in while the one before is worked on, or not
    size_t n = 6 * MILLION;
    float *host = pinned(n), *data = device(2 * n), *result = pinned(4096);
    cudaStream_t in = stream(), work = stream();
    cudaEvent_t here[2], done[2];
    for (int k = 0; k < 2; ++k) {
        CHECK(cudaEventCreateWithFlags(&here[k], cudaEventDisableTiming));
        CHECK(cudaEventCreateWithFlags(&done[k], cudaEventDisableTiming));
        CHECK(cudaEventRecord(done[k], work));
    }
    return [=](int) {
        for (int k = 0; k < 6; ++k) {
            cudaStream_t s = overlapped ? in : work;
            int half = k % 2;
            CHECK(cudaStreamWaitEvent(s, done[half]));
            CHECK(cudaMemcpyAsync(data + half * n, host, n * 4, cudaMemcpyHostToDevice, s));
            CHECK(cudaEventRecord(here[half], s));
            CHECK(cudaStreamWaitEvent(work, here[half]));
            for (int part = 0; part < 3; ++part) update<<<528, 256, 0, work>>>(data + half * n, n, 600);
            CHECK(cudaMemcpyAsync(result, data + half * n, 16384, cudaMemcpyDeviceToHost, work));
            CHECK(cudaEventRecord(done[half], work));
        }
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(frames_ill, "frames") { return frames(false); }
CASE(frames_cured, "frames.cured") { return frames(true); }

static Step pieces(int count, size_t each, bool back, bool joined) {
    float *host = pinned(count * each), *data = device(std::max<size_t>(count * each, 4 * MILLION));
    cudaMemcpyKind kind = back ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice;
    return [=](int) {
        update<<<528, 256>>>(data, 4 * MILLION, 32);
        for (int k = 0; k < (joined ? 1 : count); ++k) {
            float *to = back ? host : data, *from = back ? data : host;
            CHECK(cudaMemcpyAsync(to + k * each, from + k * each, (joined ? count : 1) * each * 4, kind));
        }
        update<<<528, 256>>>(data, 4 * MILLION, 32);
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(small_copies_ill, "fields") { return pieces(120, 512, false, false); }
CASE(small_copies_cured, "fields.cured") { return pieces(120, 512, false, true); }
CASE(results_ill, "results") { return pieces(200, 64, true, false); }
CASE(results_cured, "results.cured") { return pieces(200, 64, true, true); }

static Step workspace(bool each, size_t n, int stages) {
    float *data = device(4 * MILLION), *space = device(n);
    return [=](int) {
        for (int k = 0; k < stages; ++k) {
            float *own = space;
            if (each) CHECK(cudaMalloc((void **)&own, n * 4));
            update<<<528, 256>>>(own, n / 4, 64);
            update<<<528, 256>>>(data, 4 * MILLION, 64);
            if (each) CHECK(cudaFree(own));
        }
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(malloc_ill, "workspace") { return workspace(true, 32 * MILLION, 4); }
CASE(malloc_cured, "workspace.cured") { return workspace(false, 32 * MILLION, 4); }

static Step managed(bool prefetched, size_t n, bool all) {  // the host writes, the GPU updates, the host reads
    void *memory;
    CHECK(cudaMallocManaged(&memory, n * 4));
    float *data = (float *)memory;
    memset(data, 0, n * 4);
    cudaMemLocation gpu = {cudaMemLocationTypeDevice, 0}, host = {cudaMemLocationTypeHost, 0};
    return [=](int index) {
        for (size_t i = 0; i < n; i += all ? 256 : 4096) data[i] += index;
        if (prefetched) CHECK(cudaMemPrefetchAsync(data, n * 4, gpu, 0, 0));
        update<<<528, 256>>>(data, n, 32);
        if (prefetched) CHECK(cudaMemPrefetchAsync(data, n * 4, host, 0, 0));
        CHECK(cudaDeviceSynchronize());
        float sum = 0;
        for (size_t i = 0; i < n; i += 1024) sum += data[i];
        if (sum < -1) printf("%f\n", sum);
    };
}
CASE(faults_ill, "grid-managed") { return managed(false, 8 * MILLION, true); }
CASE(faults_cured, "grid-managed.cured") { return managed(true, 8 * MILLION, true); }
CASE(table_faults_ill, "table-managed") { return managed(false, 3 * MILLION, false); }
CASE(table_faults_cured, "table-managed.cured") { return managed(true, 3 * MILLION, false); }

// ---- the host: input, files, logs ------------------------------------------------------------------------------------

static void prepare(float *to, size_t n, int index) {  // some milliseconds of decoding
    uint32_t state = index + 1;
    for (size_t i = 0; i < n; ++i) {
        state = state * 1664525u + 1013904223u;
        to[i] = (state >> 8) * 6e-8f;
    }
}
static Step loaded(bool ahead, size_t n, int rounds) {
    float *host = pinned(2 * n), *data = device(n);
    struct Ahead {
        std::thread worker;
        std::mutex mutex;
        std::condition_variable changed;
        int ready = 0, used = 0;
    };
    Ahead *state = new Ahead;
    if (ahead) {
        state->worker = std::thread([=] {
            for (int index = 0;; ++index) {
                prepare(host + index % 2 * n, n, index);
                std::unique_lock<std::mutex> lock(state->mutex);
                state->ready = index + 1;
                state->changed.notify_all();
                state->changed.wait(lock, [=] { return state->used >= index; });
            }
        });
        state->worker.detach();
    }
    return [=](int index) {
        if (!ahead) prepare(host, n, index);
        float *from = host;
        if (ahead) {
            std::unique_lock<std::mutex> lock(state->mutex);
            state->changed.wait(lock, [=] { return state->ready > state->used; });
            from = host + state->used % 2 * n;
        }
        CHECK(cudaMemcpyAsync(data, from, n * 4, cudaMemcpyHostToDevice));
        for (int k = 0; k < 10; ++k) update<<<1056, 256>>>(data, n, rounds);
        CHECK(cudaDeviceSynchronize());
        if (ahead) {
            std::lock_guard<std::mutex> lock(state->mutex);
            ++state->used;
            state->changed.notify_all();
        }
    };
}
CASE(loader_ill, "samples") { return loaded(false, 6 * MILLION, 3000); }
CASE(loader_cured, "samples.cured") { return loaded(true, 6 * MILLION, 3000); }

static Step from_files(bool each, size_t n) {  // reads its input anew each step, or keeps it
    float *host = pinned(n), *data = device(n);
    std::string path = folder() + "/input.bin";
    FILE *file = fopen(path.c_str(), "wb");
    fwrite(host, 4, n, file);
    fclose(file);
    return [=](int) {
        if (each) {
            int input = open(path.c_str(), O_RDONLY);
            for (size_t done = 0; done < n * 4;) {
                ssize_t got = read(input, (char *)host + done, std::min<size_t>(4 << 20, n * 4 - done));
                if (got <= 0) exit(3);
                done += got;
            }
            close(input);
        }
        CHECK(cudaMemcpyAsync(data, host, n * 4, cudaMemcpyHostToDevice));
        for (int k = 0; k < 6; ++k) update<<<1056, 256>>>(data, n, 500);
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(files_ill, "tiles-from-disk") { return from_files(true, 12 * MILLION); }
CASE(files_cured, "tiles-from-disk.cured") { return from_files(false, 12 * MILLION); }

static Step checkpointed(int every, size_t n) {
    float *host = pinned(n), *data = device(n);
    std::string path = folder() + "/state.bin";
    return [=](int index) {
        for (int k = 0; k < 12; ++k) update<<<1056, 256>>>(data, n, 400);
        if (every && index % every == every - 1) {
            CHECK(cudaMemcpy(host, data, n * 4, cudaMemcpyDeviceToHost));
            int output = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
            if (write(output, host, n * 4) < 0) exit(3);
            fsync(output);
            close(output);
        }
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(checkpoint_ill, "state-each-step") { return checkpointed(1, 8 * MILLION); }
CASE(checkpoint_periodic, "state-each-sixth") { return checkpointed(6, 8 * MILLION); }
CASE(checkpoint_cured, "state-each-step.cured") { return checkpointed(0, 8 * MILLION); }

static Step logged(bool log, int lines) {
    float *data = device(4 * MILLION), *host = pinned(4096);
    FILE *file = fopen((folder() + "/log.txt").c_str(), "w");
    return [=](int index) {
        for (int k = 0; k < 8; ++k) update<<<528, 256>>>(data, 4 * MILLION, 300);
        CHECK(cudaMemcpyAsync(host, data, 16384, cudaMemcpyDeviceToHost));
        CHECK(cudaDeviceSynchronize());
        for (int k = 0; log && k < lines; ++k) {
            fprintf(file, "step %d cell %d value %.9g residual %.9g\n", index, k, host[k % 4096], host[(k + 1) % 4096]);
            fflush(file);
        }
    };
}
CASE(log_ill, "cells-logged") { return logged(true, 1500); }
CASE(log_cured, "cells-logged.cured") { return logged(false, 0); }

// each eighth step evaluates
static Step evaluated(int every) {
    float *data = device(8 * MILLION), *other = device(32 * MILLION);
    return [=](int index) {
        for (int k = 0; k < 10; ++k) update<<<1056, 256>>>(data, 8 * MILLION, 100);
        if (every && index % every == every - 1)
            for (int k = 0; k < 12; ++k) update<<<1056, 256>>>(other, 32 * MILLION, 100);
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(evaluated_ill, "evaluates-each-eighth") { return evaluated(8); }
CASE(evaluated_cured, "evaluates-each-eighth.cured") { return evaluated(0); }

// the first step makes its tables
static Step first(bool before) {
    float *data = device(16 * MILLION);
    auto tables = [=] {
        std::vector<float> table(48 * MILLION);
        prepare(table.data(), table.size(), 1);
        CHECK(cudaMemcpy(data, table.data(), 64 * MILLION, cudaMemcpyHostToDevice));
    };
    if (before) tables();
    return [=](int index) {
        if (!before && index == 0) tables();
        for (int k = 0; k < 10; ++k) update<<<1056, 256>>>(data, 16 * MILLION, 100);
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(first_ill, "tables-at-first") { return first(false); }
CASE(first_cured, "tables-at-first.cured") { return first(true); }

// healthy: kernels end to end
CASE(busy, "kernels-end-to-end") {
    float *data = device(16 * MILLION);
    return [=](int) {
        for (int k = 0; k < 12; ++k) update<<<1056, 256>>>(data, 16 * MILLION, 200);
        CHECK(cudaStreamSynchronize(0));
    };
}

int main(int argc, char **argv) {
    std::string how = argc > 1 ? argv[1] : "list";
    if (how == "list") {
        for (auto &entry : cases) printf("%s\n", entry.first.c_str());
        return 0;
    }
    if (const char *path = getenv("DIAGNOSIS_LOCK")) flock(open(path, O_RDWR | O_CREAT, 0666), LOCK_EX);
    int steps = atoi(argv[2]);
    bool marked = getenv("DIAGNOSIS_MARKED") != nullptr, traced = how == "run";
    for (int at = 3; at < argc; ++at) {
        auto entry = cases.find(argv[at]);
        if (entry == cases.end()) {
            fprintf(stderr, "no case %s\n", argv[at]);
            return 2;
        }
        Step step = entry->second();
        // what the first step does is part of a case that is traced, and of one about the first step
        bool cold = strncmp(argv[at], "tables-at-first", 15) == 0;
        int warm = traced || cold ? 0 : 3;
        for (int index = 0; index < warm; ++index) step(index);
        CHECK(cudaDeviceSynchronize());
        auto begun = std::chrono::steady_clock::now();
        for (int index = 0; index < steps; ++index) {
            if (marked) nvtxRangePushA("step");
            step(index);
            if (marked) nvtxRangePop();
        }
        CHECK(cudaDeviceSynchronize());
        double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count();
        printf("time %s %.6f\n", argv[at], ms / steps);
        fflush(stdout);
    }
    return 0;
}
