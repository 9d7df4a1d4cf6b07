// The second part's host sides: programs that drive the GPU badly in one way, or well. NAME.cured is the same work without it.
#include "host_harness.h"

__global__ void relax(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) out[i] = 0.5f * in[i] + 0.25f * (in[i - 1] + in[i + 1]);
}
__global__ void smooth(float *data, size_t n, int passes) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        float x = data[i];
        for (int p = 0; p < passes; ++p) x = fmaf(x, 0.995f, 0.002f);
        data[i] = x;
    }
}
__global__ void dot(const float *a, const float *b, float *sum, size_t n) {
    float own = 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) own += a[i] * b[i];
    for (int far = 16; far; far /= 2) own += __shfl_down_sync(~0u, own, far);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, own);
}
__global__ void use(const float *parameters, float *data, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        data[i] = fmaf(data[i], 0.999f, parameters[i & 31]);
}

// launch-bound: 300 sweeps over a line of 16,384 points, kernel by kernel (ill) or as a graph (cured)
static Step sweeps(bool graph) {
    const int n = 16384;
    float *a = on_device(n), *b = on_device(n);
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    auto all = [=] {
        for (int s = 0; s < 150; ++s) {
            relax<<<n / 256, 256, 0, stream>>>(a, b, n);
            relax<<<n / 256, 256, 0, stream>>>(b, a, n);
        }
    };
    cudaGraphExec_t replay = nullptr;
    if (graph) {
        cudaGraph_t captured;
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        all();
        CHECK(cudaStreamEndCapture(stream, &captured));
        CHECK(cudaGraphInstantiate(&replay, captured, 0));
    }
    return [=](int) {
        if (graph)
            CHECK(cudaGraphLaunch(replay, stream));
        else
            all();
        CHECK(cudaStreamSynchronize(stream));
    };
}
CASE(sweeps_ill, "line-sweeps") { return sweeps(false); }
CASE(sweeps_cured, "line-sweeps.cured") { return sweeps(true); }

// sync-each-operation: 80 filters of some 10 us, each waited for (ill) or all at the end (cured)
static Step pipeline_stages(bool wait) {
    float *data = on_device(2 * M);
    return [=](int) {
        for (int stage = 0; stage < 80; ++stage) {
            smooth<<<528, 256>>>(data, 2 * M, 150);
            CHECK(cudaGetLastError());
            if (wait) CHECK(cudaDeviceSynchronize());
        }
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(stages_ill, "checked-stages") { return pipeline_stages(true); }
CASE(stages_cured, "checked-stages.cured") { return pipeline_stages(false); }

// pageable-copies: volumes of 48 MB are sent from malloc (ill) or pinned memory (cured), and worked on
static Step volumes(bool pageable) {
    size_t n = 12 * M;
    float *host = pageable ? (float *)malloc(n * 4) : pinned(n);
    for (size_t i = 0; i < n; ++i) host[i] = 1;
    float *data = on_device(n);
    return [=](int) {
        CHECK(cudaMemcpyAsync(data, host, n * 4, cudaMemcpyHostToDevice, 0));
        smooth<<<1056, 256>>>(data, n, 300);
        smooth<<<1056, 256>>>(data, n, 300);
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(volumes_ill, "volumes") { return volumes(true); }
CASE(volumes_cured, "volumes.cured") { return volumes(false); }

// no-copy-overlap: 8 shots of a survey: in, worked on, out, in one stream (ill) or three (cured, and healthy)
static Step shots(int streams) {
    const int count = 8;
    size_t n = 4 * M;
    std::vector<cudaStream_t> stream(streams);
    for (auto &one : stream) CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    std::vector<float *> in, out, data;
    for (int s = 0; s < count; ++s) {
        in.push_back(pinned(n));
        out.push_back(pinned(n));
        data.push_back(on_device(n));
    }
    return [=](int) {
        for (int s = 0; s < count; ++s) {
            cudaStream_t own = stream[s % streams];
            CHECK(cudaMemcpyAsync(data[s], in[s], n * 4, cudaMemcpyHostToDevice, own));
            smooth<<<1056, 256, 0, own>>>(data[s], n, 1200);
            CHECK(cudaMemcpyAsync(out[s], data[s], n * 4, cudaMemcpyDeviceToHost, own));
        }
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(shots_ill, "shots") { return shots(1); }
CASE(shots_cured, "shots.cured") { return shots(4); }

// small-copies: 200 instruments get 128 bytes of parameters each, one by one (ill) or in a block (cured)
static Step instruments(bool separate) {
    const int count = 200;
    float *host = pinned(count * 32), *device = on_device(count * 32), *data = on_device(8 * M);
    return [=](int) {
        if (separate)
            for (int k = 0; k < count; ++k)
                CHECK(cudaMemcpyAsync(device + k * 32, host + k * 32, 128, cudaMemcpyHostToDevice, 0));
        else
            CHECK(cudaMemcpyAsync(device, host, count * 128, cudaMemcpyHostToDevice, 0));
        for (int k = 0; k < 10; ++k) use<<<1056, 256>>>(device + k * 32, data, 8 * M);
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(instruments_ill, "instruments") { return instruments(true); }
CASE(instruments_cured, "instruments.cured") { return instruments(false); }

// allocation-in-loop: 12 stages, each with a work space of its own, from cudaMalloc (ill) or kept (cured)
static Step work_spaces(bool each) {
    size_t n = 16 * M;
    float *kept = on_device(n);
    return [=](int) {
        for (int stage = 0; stage < 12; ++stage) {
            float *space = kept;
            if (each) CHECK(cudaMalloc(&space, n * 4));
            smooth<<<1056, 256>>>(space, n, 100);
            smooth<<<1056, 256>>>(space, n, 100);
            if (each) CHECK(cudaFree(space));
        }
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(spaces_ill, "work-spaces") { return work_spaces(true); }
CASE(spaces_cured, "work-spaces.cured") { return work_spaces(false); }

// page-faults: a managed grid of 32 MB; the host sets new sources in each of its pages and the GPU relaxes it;
// the pages come by faults (ill), or are fetched before each (cured)
static Step sources(bool faults) {
    size_t n = 8 * M;
    float *grid;
    CHECK(cudaMallocManaged(&grid, n * 4));
    for (size_t i = 0; i < n; ++i) grid[i] = 1;
    cudaMemLocation gpu{}, host{};
    gpu.type = cudaMemLocationTypeDevice;
    host.type = cudaMemLocationTypeHost;
    return [=](int index) {
        for (size_t i = 0; i < n; i += 1024) grid[i] += index;
        if (!faults) CHECK(cudaMemPrefetchAsync(grid, n * 4, gpu, 0, 0));
        for (int k = 0; k < 6; ++k) smooth<<<1056, 256>>>(grid, n, 200);
        if (!faults) CHECK(cudaMemPrefetchAsync(grid, n * 4, host, 0, 0));
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(sources_ill, "managed-sources") { return sources(true); }
CASE(sources_cured, "managed-sources.cured") { return sources(false); }

// kernels-not-concurrent: 24 channels of 12 blocks each, one after the other (ill) or in 8 streams (cured)
static Step channels(int streams) {
    std::vector<cudaStream_t> stream(streams);
    for (auto &one : stream) CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    size_t n = 12 * 256;
    float *data = on_device(24 * n);
    return [=](int) {
        for (int c = 0; c < 24; ++c) smooth<<<12, 256, 0, stream[c % streams]>>>(data + c * n, n, 20000);
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(channels_ill, "channels") { return channels(1); }
CASE(channels_cured, "channels.cured") { return channels(8); }

// default-stream: two fields in streams that block (ill) or do not (cured), while a third works in stream 0
static Step fields(bool blocking) {
    cudaStream_t stream[2];
    for (auto &one : stream) CHECK(cudaStreamCreateWithFlags(&one, blocking ? cudaStreamDefault : cudaStreamNonBlocking));
    cudaStream_t left = stream[0], right = stream[1];
    size_t n = 40 * 256;
    float *a = on_device(n), *b = on_device(n), *c = on_device(n);
    return [=](int) {
        for (int k = 0; k < 10; ++k) {
            smooth<<<40, 256, 0, left>>>(a, n, 15000);
            smooth<<<40, 256>>>(b, n, 15000);
            smooth<<<40, 256, 0, right>>>(c, n, 15000);
        }
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(fields_ill, "two-fields") { return fields(true); }
CASE(fields_cured, "two-fields.cured") { return fields(false); }

// scalar-reads: conjugate gradients that read a dot product of 4 bytes after each of 40 products (ill), or the last (cured)
static Step gradients(bool each) {
    size_t n = 2 * M;
    float *a = on_device(n), *b = on_device(n), *sums = on_device(64), *host = pinned(64);
    return [=](int) {
        CHECK(cudaMemsetAsync(sums, 0, 256, 0));
        for (int k = 0; k < 40; ++k) {
            smooth<<<528, 256>>>(a, n, 20);
            smooth<<<528, 256>>>(b, n, 20);
            dot<<<264, 256>>>(a, b, sums + k, n);
            if (each || k == 39) {
                CHECK(cudaMemcpyAsync(host + k, sums + k, 4, cudaMemcpyDeviceToHost, 0));
                CHECK(cudaStreamSynchronize(0));
                if (std::isnan(host[k])) exit(1);
            }
        }
    };
}
CASE(gradients_ill, "conjugate-gradients") { return gradients(true); }
CASE(gradients_cured, "conjugate-gradients.cured") { return gradients(false); }

// file-io: a field of 24 MB is written and made durable in each step (ill), or each tenth (cured)
static Step snapshots(int every) {
    size_t n = 6 * M;
    float *data = on_device(n), *host = pinned(n);
    std::string name = std::string(getenv("DIAGNOSIS_FILES") ? getenv("DIAGNOSIS_FILES") : ".") + "/snapshot";
    return [=](int index) {
        for (int k = 0; k < 60; ++k) smooth<<<1056, 256>>>(data, n, 400);
        if (index % every == every - 1) {
            CHECK(cudaMemcpyAsync(host, data, n * 4, cudaMemcpyDeviceToHost, 0));
            CHECK(cudaStreamSynchronize(0));
            int file = open(name.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
            if (file < 0 || write(file, host, n * 4) != (ssize_t)(n * 4)) exit(1);
            fsync(file);
            close(file);
        }
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(snapshots_ill, "snapshots") { return snapshots(1); }
CASE(snapshots_cured, "snapshots.cured") { return snapshots(10); }

// healthy: frames come and go by two copy engines beside kernels that take longer than the copies
CASE(video_healthy, "video") {
    const int count = 12;
    size_t n = 3 * M;
    std::vector<cudaStream_t> stream(3);
    for (auto &one : stream) CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    float *in = pinned(n * 3), *out = pinned(n * 3), *data = on_device(n * 3);
    return [=](int) {
        for (int f = 0; f < count; ++f) {
            size_t at = f % 3 * n;
            CHECK(cudaMemcpyAsync(data + at, in + at, n * 4, cudaMemcpyHostToDevice, stream[f % 3]));
            smooth<<<1056, 256, 0, stream[f % 3]>>>(data + at, n, 4000);
            CHECK(cudaMemcpyAsync(out + at, data + at, n * 4, cudaMemcpyDeviceToHost, stream[f % 3]));
        }
        // the next frames are under way while these are waited for
        CHECK(cudaStreamSynchronize(stream[0]));
    };
}

// healthy: a graph of 40 kernels of some 50 us, replayed
CASE(replayed_healthy, "replayed") {
    size_t n = 8 * M;
    float *data = on_device(n);
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    cudaGraph_t captured;
    cudaGraphExec_t replay;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int k = 0; k < 40; ++k) smooth<<<1056, 256, 0, stream>>>(data, n, 300);
    CHECK(cudaStreamEndCapture(stream, &captured));
    CHECK(cudaGraphInstantiate(&replay, captured, 0));
    return [=](int) {
        CHECK(cudaGraphLaunch(replay, stream));
        CHECK(cudaStreamSynchronize(stream));
    };
}

// healthy: kernels of some 100 us, launched ahead of the GPU; the host waits once a step
CASE(ahead_healthy, "launched-ahead") {
    size_t n = 24 * M;
    float *data = on_device(n), *sums = on_device(64), *host = pinned(64);
    return [=](int) {
        for (int k = 0; k < 20; ++k) smooth<<<1056, 256>>>(data, n, 150);
        dot<<<264, 256>>>(data, data, sums, n);
        CHECK(cudaMemcpyAsync(host, sums, 4, cudaMemcpyDeviceToHost, 0));
        CHECK(cudaStreamSynchronize(0));
    };
}

int main(int argc, char **argv) {
    return run_cases(argc, argv);
}
