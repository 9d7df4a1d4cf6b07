// What the programs of host sides share: two kinds of memory, streams, and two ways to run cases.
//
//   PROGRAM list
//   PROGRAM time STEPS CASE...    milliseconds a step by the host's clock, after three steps to warm up
//   PROGRAM run STEPS CASE        once, to be traced; DIAGNOSIS_LOCK: a file that one program at a time holds
#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <fcntl.h>
#include <functional>
#include <map>
#include <string>
#include <sys/file.h>
#include <unistd.h>
#include <vector>

#define M (1 << 20)
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

static float *on_device(size_t n) {
    float *data;
    CHECK(cudaMalloc(&data, n * sizeof(float)));
    CHECK(cudaMemset(data, 0, n * sizeof(float)));
    return data;
}
static float *pinned(size_t n) {
    float *data;
    CHECK(cudaMallocHost(&data, n * sizeof(float)));
    for (size_t i = 0; i < n; ++i) data[i] = 1e-3f * (i % 1000);
    return data;
}
static std::vector<cudaStream_t> streams(int count, unsigned flags) {
    std::vector<cudaStream_t> all(count);
    for (auto &stream : all) CHECK(cudaStreamCreateWithFlags(&stream, flags));
    return all;
}

static int run_cases(int argc, char **argv) {
    std::string how = argc > 1 ? argv[1] : "list";
    if (how == "list") {
        for (auto &entry : cases) printf("%s\n", entry.first.c_str());
        return 0;
    }
    if (const char *path = getenv("DIAGNOSIS_LOCK")) flock(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666), LOCK_EX);
    int steps = atoi(argv[2]);
    for (int at = 3; at < argc; ++at) {
        auto entry = cases.find(argv[at]);
        if (entry == cases.end()) {
            fprintf(stderr, "no case %s\n", argv[at]);
            return 2;
        }
        Step step = entry->second();
        for (int index = 0; index < (how == "run" ? 0 : 3); ++index) step(index);
        CHECK(cudaDeviceSynchronize());
        auto begun = std::chrono::steady_clock::now();
        for (int index = 0; index < steps; ++index) step(index);
        CHECK(cudaDeviceSynchronize());
        double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count();
        printf("time %s %.6f\n", argv[at], ms / steps);
        fflush(stdout);
    }
    return 0;
}
