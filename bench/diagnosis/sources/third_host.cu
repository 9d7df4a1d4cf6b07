// The third part's host sides: programs that drive the GPU badly in one way, or well. NAME.cured is the same work without it.
#include "host_harness.h"
#include <csignal>
#include <future>
#include <memory>
#include <sys/wait.h>

#define EACH(i, n) (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < (n); i += (size_t)gridDim.x * blockDim.x)

__global__ void propagate(const float *now, const float *before, float *next, int nx, int ny) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x == 0 || y == 0 || x >= nx - 1 || y >= ny - 1) return;
    int at = y * nx + x;
    next[at] = 2 * now[at] - before[at] + 0.2f * (now[at - 1] + now[at + 1] + now[at - nx] + now[at + nx] - 4 * now[at]);
}
__global__ void damp(float *field, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) field[i] *= 0.9999f;
}
__global__ void inject(float *field, int at, float value) {
    if (threadIdx.x == 0) field[at] += value;
}
__global__ void work(float *data, size_t n, int passes) {
    for EACH(i, n) {
        float x = data[i];
        for (int p = 0; p < passes; ++p) x = fmaf(x, 0.997f, 0.001f);
        data[i] = x;
    }
}
__global__ void convert(const float *in, float *out, size_t n, int passes) {
    for EACH(i, n) {
        float x = in[i];
        for (int p = 0; p < passes; ++p) x = fmaf(x, 0.997f, 0.001f);
        out[i] = x;
    }
}

// launch-bound: waves on a field of 256 by 256, three kernels a time step (ill), or the 100 time steps as a graph (cured)
static Step waves(bool graph) {
    const int nx = 256, ny = 256;
    float *a = on_device(nx * ny), *b = on_device(nx * ny), *c = on_device(nx * ny);
    cudaStream_t stream = streams(1, cudaStreamNonBlocking)[0];
    auto all = [=] {
        float *before = a, *now = b, *next = c;
        for (int t = 0; t < 99; ++t) {
            propagate<<<dim3(nx / 128, ny), 128, 0, stream>>>(now, before, next, nx, ny);
            damp<<<nx * ny / 256, 256, 0, stream>>>(next, nx * ny);
            inject<<<1, 32, 0, stream>>>(next, nx * ny / 2 + nx / 2, 0.1f);
            float *free = before;
            before = now, now = next, next = free;
        }
    };
    if (!graph)
        return [=](int) {
            all();
            CHECK(cudaStreamSynchronize(stream));
        };
    cudaGraph_t captured;
    cudaGraphExec_t replay;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    all();
    CHECK(cudaStreamEndCapture(stream, &captured));
    CHECK(cudaGraphInstantiate(&replay, captured, 0));
    return [=](int) {
        CHECK(cudaGraphLaunch(replay, stream));
        CHECK(cudaStreamSynchronize(stream));
    };
}
CASE(waves_ill, "field-waves") { return waves(false); }
CASE(waves_cured, "field-waves.cured") { return waves(true); }

// sync-each-operation: 60 kernels of some 15 us, an event waited for after each (ill), or after all (cured)
static Step phases(bool each) {
    size_t n = 2 * M;
    float *data = on_device(n);
    cudaEvent_t done;
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    return [=](int) {
        for (int k = 0; k < 60; ++k) {
            work<<<1056, 256>>>(data, n, 100);
            if (each || k == 59) {
                CHECK(cudaEventRecord(done));
                CHECK(cudaEventSynchronize(done));
            }
        }
    };
}
CASE(phases_ill, "phases") { return phases(true); }
CASE(phases_cured, "phases.cured") { return phases(false); }

// no-copy-overlap: radar sweeps go in, are converted and come out, in a stream (ill) or three (cured); pinned
static Step sweeps(int count) {
    const int parts = 12;
    size_t n = 3 * M;
    auto all = streams(count, cudaStreamNonBlocking);
    std::vector<float *> in, out, din, dout;
    for (int p = 0; p < parts; ++p) in.push_back(pinned(n)), out.push_back(pinned(n)), din.push_back(on_device(n)), dout.push_back(on_device(n));
    return [=](int) {
        for (int p = 0; p < parts; ++p) {
            cudaStream_t s = all[p % count];
            CHECK(cudaMemcpyAsync(din[p], in[p], n * 4, cudaMemcpyHostToDevice, s));
            convert<<<528, 256, 0, s>>>(din[p], dout[p], n, 1800);
            CHECK(cudaMemcpyAsync(out[p], dout[p], n * 4, cudaMemcpyDeviceToHost, s));
        }
        for (auto s : all) CHECK(cudaStreamSynchronize(s));
    };
}
CASE(sweeps_ill, "radar-sweeps") { return sweeps(1); }
CASE(sweeps_cured, "radar-sweeps.cured") { return sweeps(4); }

// small-copies: 240 records of 200 bytes go to the GPU one by one (ill) or packed (cured); pinned, asynchronous
static Step records(bool packed) {
    const int count = 240, bytes = 200;
    char *host = (char *)pinned(count * 256 / 4), *device = (char *)on_device(count * 256 / 4);
    size_t n = 2 * M;
    float *data = on_device(n);
    return [=](int) {
        if (packed)
            CHECK(cudaMemcpyAsync(device, host, count * 256, cudaMemcpyHostToDevice, 0));
        else
            for (int r = 0; r < count; ++r) CHECK(cudaMemcpyAsync(device + r * 256, host + r * 256, bytes, cudaMemcpyHostToDevice, 0));
        work<<<528, 256>>>(data, n, 400);
        CHECK(cudaStreamSynchronize(0));
    };
}
CASE(records_ill, "records") { return records(false); }
CASE(records_cured, "records.cured") { return records(true); }

// allocation-in-loop: page-locked memory for the results is allocated and freed each step (ill), or once (cured)
static Step results(bool each) {
    size_t n = 4 * M;
    float *data = on_device(n), *kept = pinned(n);
    return [=](int) {
        float *host = kept;
        if (each) CHECK(cudaHostAlloc((void **)&host, n * 4, cudaHostAllocDefault));
        work<<<528, 256>>>(data, n, 2000);
        CHECK(cudaMemcpyAsync(host, data, n * 4, cudaMemcpyDeviceToHost, 0));
        CHECK(cudaStreamSynchronize(0));
        if (each) CHECK(cudaFreeHost(host));
    };
}
CASE(results_ill, "page-locked-results") { return results(true); }
CASE(results_cured, "page-locked-results.cured") { return results(false); }

// page-faults: agents that the host moves and the GPU scores are in managed memory (ill), or copied (cured)
static Step agents(bool managed) {
    size_t n = 4 * M;
    float *shared;
    CHECK(cudaMallocManaged(&shared, n * 4));
    float *host = managed ? shared : pinned(n), *device = managed ? shared : on_device(n);
    return [=](int index) {
        for (size_t i = 0; i < n; i += 512) host[i] = index + 1e-3f * i;
        if (!managed) CHECK(cudaMemcpyAsync(device, host, n * 4, cudaMemcpyHostToDevice, 0));
        work<<<528, 256>>>(device, n, 200);
        if (!managed) CHECK(cudaMemcpyAsync(host, device, n * 4, cudaMemcpyDeviceToHost, 0));
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(agents_ill, "agents") { return agents(true); }
CASE(agents_cured, "agents.cured") { return agents(false); }

// default-stream: 4 streams of 3 kernels each, with a kernel of the default stream every now and then: part of it overlaps
// (ill); streams that do not wait for it (cured)
static Step players(bool blocking) {
    auto all = streams(4, blocking ? cudaStreamDefault : cudaStreamNonBlocking);
    size_t n = 32 * 1024;
    std::vector<float *> data;
    for (int s = 0; s < 5; ++s) data.push_back(on_device(n));
    return [=](int) {
        for (int round = 0; round < 8; ++round) {
            for (int s = 0; s < 4; ++s) {
                for (int k = 0; k < 1 + (s + round) % 4; ++k) work<<<28, 128, 0, all[s]>>>(data[s], n, 2400);
                if (s % 2) work<<<8, 128>>>(data[4], 1024, 6000);
            }
        }
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(players_ill, "players") { return players(true); }
CASE(players_cured, "players.cured") { return players(false); }

// kernels-not-concurrent: 24 independent fits of 6 blocks, in a stream (ill) or in 24 (cured)
static Step fits(int count) {
    auto all = streams(count, cudaStreamNonBlocking);
    size_t n = 6 * 256;
    std::vector<float *> data;
    for (int f = 0; f < 24; ++f) data.push_back(on_device(n));
    return [=](int) {
        for (int f = 0; f < 24; ++f) work<<<6, 256, 0, all[f % count]>>>(data[f], n, 40000 + 900 * f);
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(fits_ill, "fits") { return fits(1); }
CASE(fits_cured, "fits.cured") { return fits(24); }

// periodic-slow-iteration: neighbours are listed anew on the host each 6th step (ill) or by a second thread ahead (cured)
static Step listed(bool waits) {
    size_t n = 16 * M;
    float *data = on_device(n), *lists = on_device(2 * M), *host = pinned(2 * M);
    auto build = [=] {
        float x = 0.3f;
        for (int i = 0; i < 2 * M; ++i) x = std::sin(x + i), host[i] = x;
    };
    auto ahead = std::make_shared<std::future<void>>();
    return [=](int index) {
        if (index % 6 == 0) {
            if (waits)
                build();
            else if (ahead->valid())
                ahead->get();
            CHECK(cudaMemcpyAsync(lists, host, 2 * M * 4, cudaMemcpyHostToDevice, 0));
            CHECK(cudaStreamSynchronize(0));
            if (!waits) *ahead = std::async(std::launch::async, build);
        }
        for (int k = 0; k < 20; ++k) work<<<1056, 256>>>(data, n, 700);
        CHECK(cudaStreamSynchronize(0));
    };
}
CASE(listed_ill, "neighbour-lists") { return listed(true); }
CASE(listed_cured, "neighbour-lists.cured") { return listed(false); }

// logging: each step writes a line for each of 3000 sensors, unbuffered (ill), or none (cured)
static Step sensors(bool logs) {
    size_t n = 4 * M;
    float *data = on_device(n), *host = pinned(3000);
    std::string path = std::string(getenv("DIAGNOSIS_FILES") ? getenv("DIAGNOSIS_FILES") : "/tmp") + "/sensors-" + std::to_string(getpid());
    FILE *file = fopen(path.c_str(), "w");
    setvbuf(file, nullptr, _IONBF, 0);
    return [=](int index) {
        work<<<528, 256>>>(data, n, 1000);
        CHECK(cudaMemcpyAsync(host, data, 12000, cudaMemcpyDeviceToHost, 0));
        CHECK(cudaStreamSynchronize(0));
        if (logs)
            for (int s = 0; s < 3000; ++s) fprintf(file, "step %d sensor %d value %.6f\n", index, s, host[s]);
    };
}
CASE(sensors_ill, "sensors") { return sensors(true); }
CASE(sensors_cured, "sensors.cured") { return sensors(false); }

// pageable-copies: pictures come back into ordinary memory (ill) or page-locked memory (cured)
static Step pictures(bool ordinary) {
    size_t n = 12 * M;
    float *data = on_device(n), *host = ordinary ? (float *)malloc(n * 4) : pinned(n);
    if (ordinary) memset(host, 1, n * 4);
    return [=](int) {
        work<<<1056, 256>>>(data, n, 1500);
        CHECK(cudaMemcpyAsync(host, data, n * 4, cudaMemcpyDeviceToHost, 0));
        CHECK(cudaStreamSynchronize(0));
    };
}
CASE(pictures_ill, "rendered-pictures") { return pictures(true); }
CASE(pictures_cured, "rendered-pictures.cured") { return pictures(false); }

// late-rank-shared-gpu, with one GPU: another process computes on it (ill), or none does (cured)
static Step shared_gpu(bool another) {
    std::shared_ptr<void> other;
    int ready[2];
    if (another && pipe(ready) == 0) {
        pid_t pid = fork();
        if (!pid) {
            dup2(ready[1], 1);
            char *nothing[] = {nullptr}, *words[] = {(char *)"third_host", (char *)"hog", nullptr};
            execve("/proc/self/exe", words, nothing);  // without what a profiler has put into the environment
            _exit(1);
        }
        other = std::shared_ptr<void>(nullptr, [pid](void *) { kill(pid, SIGKILL), waitpid(pid, nullptr, 0); });
        char byte;
        if (read(ready[0], &byte, 1) != 1) exit(1);
    }
    size_t n = 16 * M;
    float *data = on_device(n);
    return [=](int) {
        (void)other;
        for (int k = 0; k < 30; ++k) work<<<1056, 256>>>(data, n, 500);
        CHECK(cudaStreamSynchronize(0));
    };
}
CASE(shared_ill, "one-of-two") { return shared_gpu(true); }
CASE(shared_cured, "one-of-two.cured") { return shared_gpu(false); }

// healthy: a chain of 400 small kernels that depend on each other, as a graph: as fast as it can be
CASE(chain_healthy, "chain-of-small-kernels") {
    int n = 64 * 1024;
    float *a = on_device(n);
    cudaStream_t stream = streams(1, cudaStreamNonBlocking)[0];
    cudaGraph_t captured;
    cudaGraphExec_t replay;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int k = 0; k < 400; ++k) work<<<n / 256, 256, 0, stream>>>(a, n, 1500);
    CHECK(cudaStreamEndCapture(stream, &captured));
    CHECK(cudaGraphInstantiate(&replay, captured, 0));
    return [=](int) {
        CHECK(cudaGraphLaunch(replay, stream));
        CHECK(cudaStreamSynchronize(stream));
    };
}

// healthy: frames go in and out in two streams beside the kernels of a third, which are longer; the last frame waits alone
CASE(frames_healthy, "frames-beside") {
    const int parts = 16;
    size_t n = 2 * M;
    auto all = streams(3, cudaStreamNonBlocking);
    std::vector<float *> in, din;
    std::vector<cudaEvent_t> came(parts), ready(parts);
    for (int p = 0; p < parts; ++p) {
        in.push_back(pinned(n)), din.push_back(on_device(n));
        CHECK(cudaEventCreateWithFlags(&came[p], cudaEventDisableTiming));
        CHECK(cudaEventCreateWithFlags(&ready[p], cudaEventDisableTiming));
    }
    return [=](int) {
        for (int p = 0; p < parts; ++p) {
            CHECK(cudaMemcpyAsync(din[p], in[p], n * 4, cudaMemcpyHostToDevice, all[0]));
            CHECK(cudaEventRecord(came[p], all[0]));
            CHECK(cudaStreamWaitEvent(all[1], came[p], 0));
            work<<<1056, 256, 0, all[1]>>>(din[p], n, 9000);
            CHECK(cudaEventRecord(ready[p], all[1]));
            CHECK(cudaStreamWaitEvent(all[2], ready[p], 0));
            CHECK(cudaMemcpyAsync(in[p], din[p], n * 4, cudaMemcpyDeviceToHost, all[2]));
        }
        for (auto s : all) CHECK(cudaStreamSynchronize(s));
    };
}

static int hog() {
    float *data = on_device(32 * M);
    for (long k = 0;; ++k) {
        work<<<1056, 256>>>(data, 32 * M, 800);
        CHECK(cudaDeviceSynchronize());
        if (k == 3 && write(1, "r", 1) != 1) return 1;
    }
}

int main(int argc, char **argv) {
    if (argc > 1 && std::string(argv[1]) == "hog") return hog();
    return run_cases(argc, argv);
}
