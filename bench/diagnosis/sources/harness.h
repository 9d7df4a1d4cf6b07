// What the programs of kernels share: buffers of random numbers, and three ways to run cases.
//
//   PROGRAM list                    the names of all cases
//   PROGRAM time STEPS CASE...      milliseconds a step, by events; a case may be several, joined with +
//   PROGRAM run STEPS CASE          three steps to warm up, then STEPS: to be traced
//   PROGRAM once CASE...            one step of each between cudaProfilerStart and Stop: to be counted
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <fcntl.h>
#include <functional>
#include <map>
#include <string>
#include <sys/file.h>
#include <vector>

using Step = std::function<void()>;
static std::map<std::string, std::function<Step()>> cases;
static std::vector<void *> buffers;
static int launches = 0;

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t status = (call);                                                                                   \
        if (status != cudaSuccess) {                                                                                   \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status));                            \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define CASE(id, name)                                                                                                 \
    static Step id();                                                                                                  \
    static bool id##_listed = (cases[name] = id, true);                                                                \
    static Step id()

#define LAUNCH(kernel, grid, block, shared, ...)                                                                       \
    do {                                                                                                               \
        kernel<<<grid, block, shared>>>(__VA_ARGS__);                                                                  \
        CHECK(cudaGetLastError());                                                                                     \
        ++launches;                                                                                                    \
    } while (0)

__device__ inline uint32_t hashed(uint32_t x) {
    x = (x ^ 61) ^ (x >> 16);
    x *= 9;
    x ^= x >> 4;
    x *= 0x27d4eb2d;
    return x ^ (x >> 15);
}

template <typename T> __global__ void fill(T *data, size_t n, double low, double high) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        data[i] = (T)(low + (high - low) * (hashed((uint32_t)i) * 2.3283064e-10));
}

// Uniform numbers from low to high (below it for integers).
template <typename T> T *buffer(size_t n, double low = 0, double high = 1) {
    void *data;
    CHECK(cudaMalloc(&data, n * sizeof(T)));
    fill<T><<<1024, 256>>>((T *)data, n, low, high);
    CHECK(cudaGetLastError());
    buffers.push_back(data);
    return (T *)data;
}

template <typename T> T *copied(const std::vector<T> &values) {
    void *data;
    CHECK(cudaMalloc(&data, values.size() * sizeof(T)));
    CHECK(cudaMemcpy(data, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    buffers.push_back(data);
    return (T *)data;
}

static Step made(const std::string &names) {
    std::vector<Step> steps;
    size_t at = 0;
    while (at <= names.size()) {
        size_t end = std::min(names.find('+', at), names.size());
        auto entry = cases.find(names.substr(at, end - at));
        if (entry == cases.end()) {
            fprintf(stderr, "no case %s\n", names.substr(at, end - at).c_str());
            exit(2);
        }
        steps.push_back(entry->second());
        at = end + 1;
    }
    return [steps] { for (auto &step : steps) step(); };
}

static void freed() {
    for (void *data : buffers) CHECK(cudaFree(data));
    buffers.clear();
}

// One program at a time works on the GPU: the others wait here, before they create a context.
static void alone() {
    if (const char *path = getenv("DIAGNOSIS_LOCK")) flock(open(path, O_RDWR | O_CREAT, 0666), LOCK_EX);
}

static int run_cases(int argc, char **argv) {
    std::string how = argc > 1 ? argv[1] : "list";
    if (how == "list") {
        for (auto &entry : cases) printf("%s\n", entry.first.c_str());
        return 0;
    }
    alone();
    bool once = how == "once";
    int steps = once ? 1 : atoi(argv[2]);
    for (int at = once ? 2 : 3; at < argc; ++at) {
        Step step = made(argv[at]);
        CHECK(cudaDeviceSynchronize());
        launches = 0;
        if (once) {
            CHECK(cudaProfilerStart());
            step();
            CHECK(cudaDeviceSynchronize());
            CHECK(cudaProfilerStop());
            printf("launches %s %d\n", argv[at], launches);
        } else {
            for (int warm = 0; warm < 3; ++warm) step();
            CHECK(cudaDeviceSynchronize());
            cudaEvent_t begin, end;
            CHECK(cudaEventCreate(&begin));
            CHECK(cudaEventCreate(&end));
            CHECK(cudaEventRecord(begin));
            for (int index = 0; index < steps; ++index) step();
            CHECK(cudaEventRecord(end));
            CHECK(cudaEventSynchronize(end));
            float ms;
            CHECK(cudaEventElapsedTime(&ms, begin, end));
            printf("time %s %.6f\n", argv[at], ms / steps);
        }
        fflush(stdout);
        freed();
    }
    return 0;
}
