// Programs whose host side is ill (or not): simulations and services of many fields; NAME.cured is the twin.
#include "host_harness.h"

// A few FMAs a round and element: `rounds` sets how long a kernel takes.
template <int chains> __global__ void react(float *data, size_t n, int rounds, float rate) {
    size_t i = (blockIdx.x * (size_t)blockDim.x + threadIdx.x);
    size_t all = (size_t)gridDim.x * blockDim.x;
    for (; i < n; i += all) {
        float x[chains], start = data[i];
#pragma unroll
        for (int k = 0; k < chains; ++k) x[k] = start + k;
#pragma unroll 4
        for (int r = 0; r < rounds; ++r)
#pragma unroll
            for (int k = 0; k < chains; ++k) x[k] = fmaf(x[k], rate, 0.01f);
        float sum = 0;
#pragma unroll
        for (int k = 0; k < chains; ++k) sum += x[k];
        data[i] = sum / chains;
    }
}
__global__ void diffuse(const float *__restrict__ in, float *__restrict__ out, int w, int h, float k) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    size_t at = (size_t)y * w + x;
    float here = in[at], sum = in[at - (x > 0)] + in[at + (x < w - 1)] + in[y > 0 ? at - w : at] + in[y < h - 1 ? at + w : at];
    out[at] = fmaf(k, sum - 4 * here, here);
}
__global__ void total(const float *__restrict__ in, size_t n, float *sum) {
    float mine = 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) mine += in[i];
    for (int lanes = 16; lanes; lanes /= 2) mine += __shfl_down_sync(~0u, mine, lanes);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}
static void launched() { CHECK(cudaGetLastError()); }
static cudaEvent_t event() {
    cudaEvent_t made;
    CHECK(cudaEventCreateWithFlags(&made, cudaEventDisableTiming));
    return made;
}

// ---- sync-each-operation: a "safe launch" synchronises after each of 360 kernels of a few microseconds; the twin only asks for launch errors.
template <bool safe> static Step avalanche() {
    const int w = 2048, h = 1024;
    float *snow = on_device(w * h), *next = on_device(w * h), *speed = on_device(w * h);
    return [=](int) {
        auto checked = [] {
            launched();
            if (safe) CHECK(cudaStreamSynchronize(0));
        };
        dim3 grid(w / 32, h / 8), block(32, 8);
        for (int part = 0; part < 90; ++part) {
            diffuse<<<grid, block>>>(snow, next, w, h, 0.1f), checked();
            diffuse<<<grid, block>>>(next, snow, w, h, 0.15f), checked();
            react<2><<<1056, 256>>>(speed, w * h, 40, 0.98f), checked();
            react<1><<<1056, 256>>>(snow, w * h, 30, 0.97f), checked();
        }
    };
}
CASE(avalanche_ill, "snow-avalanche") { return avalanche<true>(); }
CASE(avalanche_cured, "snow-avalanche.cured") { return avalanche<false>(); }

// ---- pageable-copies: a tile of 96 MB comes from a std::vector; the twin's is in pinned memory.
template <bool page_locked> static Step satellite() {
    const size_t n = 24 * M;
    std::vector<float> *scene = page_locked ? nullptr : new std::vector<float>(n, 0.25f);
    float *from = page_locked ? pinned(n) : scene->data();
    float *tile = on_device(n), *sum = on_device(1), *shown = pinned(1);
    auto all = streams(1, cudaStreamNonBlocking);
    return [=](int) {
        CHECK(cudaMemcpyAsync(tile, from, n * sizeof(float), cudaMemcpyHostToDevice, all[0]));
        react<4><<<4224, 256, 0, all[0]>>>(tile, n, 400, 0.99f), launched();
        CHECK(cudaMemsetAsync(sum, 0, sizeof(float), all[0]));
        total<<<1056, 256, 0, all[0]>>>(tile, n, sum), launched();
        CHECK(cudaMemcpyAsync(shown, sum, sizeof(float), cudaMemcpyDeviceToHost, all[0]));
        CHECK(cudaStreamSynchronize(all[0]));
    };
}
CASE(satellite_ill, "satellite-scene") { return satellite<false>(); }
CASE(satellite_cured, "satellite-scene.cured") { return satellite<true>(); }

// ---- no-copy-overlap: slices are uploaded, transformed and brought back in one stream; the twin takes three streams in turn.
static Step coils(int count) {
    const int slices = 12;
    const size_t n = 5 * M;
    float *in = pinned(n * slices), *out = pinned(n * slices);
    auto all = streams(count, cudaStreamNonBlocking);
    std::vector<float *> work(3);
    for (auto &data : work) data = on_device(n);
    return [=](int) {
        for (int slice = 0; slice < slices; ++slice) {
            cudaStream_t stream = all[slice % count];
            float *data = work[slice % 3];
            CHECK(cudaMemcpyAsync(data, in + slice * n, n * sizeof(float), cudaMemcpyHostToDevice, stream));
            react<4><<<2112, 256, 0, stream>>>(data, n, 500, 0.99f), launched();
            CHECK(cudaMemcpyAsync(out + slice * n, data, n * sizeof(float), cudaMemcpyDeviceToHost, stream));
        }
        for (auto stream : all) CHECK(cudaStreamSynchronize(stream));
    };
}
CASE(coils_ill, "coil-slices") { return coils(1); }
CASE(coils_cured, "coil-slices.cured") { return coils(3); }

// ---- small-copies: the states of 1200 junctions are copied one by one (1 KB each); the twin packs them into one copy.
template <bool packed> static Step junctions() {
    const int count = 1200, each = 256;
    std::vector<float *> states(count);
    for (auto &state : states) state = pinned(each);
    float *staged = pinned((size_t)count * each), *city = on_device((size_t)count * each), *flow = on_device(4 * M), *late = pinned(1);
    auto all = streams(1, cudaStreamNonBlocking);
    return [=](int step) {
        for (int j = 0; j < count; ++j) states[j][step % each] += 0.5f;
        if (packed) {
            for (int j = 0; j < count; ++j) memcpy(staged + (size_t)j * each, states[j], each * sizeof(float));
            CHECK(cudaMemcpyAsync(city, staged, (size_t)count * each * sizeof(float), cudaMemcpyHostToDevice, all[0]));
        } else
            for (int j = 0; j < count; ++j)
                CHECK(cudaMemcpyAsync(city + (size_t)j * each, states[j], each * sizeof(float), cudaMemcpyHostToDevice, all[0]));
        react<2><<<1200, 256, 0, all[0]>>>(city, (size_t)count * each, 100, 0.9f), launched();
        react<4><<<2112, 256, 0, all[0]>>>(flow, 4 * M, 3000, 0.99f), launched();
        CHECK(cudaMemcpyAsync(late, flow, sizeof(float), cudaMemcpyDeviceToHost, all[0]));
        CHECK(cudaStreamSynchronize(all[0]));
    };
}
CASE(junctions_ill, "road-junctions") { return junctions<false>(); }
CASE(junctions_cured, "road-junctions.cured") { return junctions<true>(); }

// ---- allocation-in-loop: each of 24 basins allocates and frees its scratch; the twin keeps one scratch, as large as the largest.
struct Scratch {
    float *data;
    explicit Scratch(size_t n) { CHECK(cudaMalloc(&data, n * sizeof(float))); }
    ~Scratch() { CHECK(cudaFree(data)); }
    Scratch(const Scratch &) = delete;
};
template <bool kept> static Step floods() {
    const int w = 2048, h = 2048;
    float *water = on_device(w * h), *scratch = kept ? on_device(w * (h + 64 * 24)) : nullptr;
    return [=](int) {
        dim3 block(32, 8);
        for (int basin = 0; basin < 24; ++basin) {
            int rows = 512 + 64 * basin;
            auto flow = [&](float *depth) {
                diffuse<<<dim3(w / 32, rows / 8), block>>>(water, depth, w, rows, 0.2f), launched();
                react<4><<<1056, 256>>>(depth, (size_t)w * rows, 200, 0.95f), launched();
                diffuse<<<dim3(w / 32, rows / 8), block>>>(depth, water, w, rows, 0.1f), launched();
            };
            if (kept) flow(scratch);
            else {
                Scratch depth((size_t)w * rows);
                flow(depth.data);
            }
        }
    };
}
CASE(floods_ill, "flood-basins") { return floods<false>(); }
CASE(floods_cured, "flood-basins.cured") { return floods<true>(); }

// ---- page-faults: the host writes the tide into managed memory, which the kernel reads; the twin copies from pinned memory.
template <bool managed> static Step tides() {
    const size_t n = 4 * M;
    float *tide, *sea;
    if (managed) {
        CHECK(cudaMallocManaged(&tide, n * sizeof(float)));
        for (size_t i = 0; i < n; ++i) tide[i] = 1e-3f * (i % 1000);
        sea = tide;
    } else {
        tide = pinned(n);
        sea = on_device(n);
    }
    float *harbour = on_device(8 * M);
    return [=](int step) {
        float level = 0.01f * (step % 12);
        for (size_t i = 0; i < n; i += 4) tide[i] = level + 1e-7f * i;
        if (!managed) CHECK(cudaMemcpyAsync(sea, tide, n * sizeof(float), cudaMemcpyHostToDevice, 0));
        react<2><<<1056, 256>>>(sea, n, 60, 0.9f), launched();
        react<4><<<2112, 256>>>(harbour, 8 * M, 1200, 0.99f), launched();
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(tides_ill, "harbour-tides") { return tides<true>(); }
CASE(tides_cured, "harbour-tides.cured") { return tides<false>(); }

// ---- default-stream: after each room's kernel the price board is updated in the legacy default stream; the twin's streams do not wait for it.
template <bool blocking> static Step rooms() {
    const int count = 6;
    auto all = streams(count, blocking ? cudaStreamDefault : cudaStreamNonBlocking);
    cudaStream_t board_stream = blocking ? 0 : streams(1, cudaStreamNonBlocking)[0];
    std::vector<float *> bids(count);
    for (auto &bid : bids) bid = on_device(16 * 256);
    float *board = on_device(4096);
    return [=](int) {
        for (int round = 0; round < 12; ++round)
            for (int room = 0; room < count; ++room) {
                react<2><<<16, 256, 0, all[room]>>>(bids[room], 16 * 256, 60000, 0.99f), launched();
                react<1><<<16, 256, 0, board_stream>>>(board, 4096, 20, 0.99f), launched();
            }
        for (auto stream : all) CHECK(cudaStreamSynchronize(stream));
        CHECK(cudaStreamSynchronize(board_stream));
    };
}
CASE(rooms_ill, "auction-rooms") { return rooms<true>(); }
CASE(rooms_cured, "auction-rooms.cured") { return rooms<false>(); }

// ---- kernels-not-concurrent: ten independent canopies of 12 blocks follow each other in a stream; the twin gives each a stream of its own.
static Step canopies(bool forked) {
    const int count = 10;
    auto all = streams(count, cudaStreamNonBlocking);
    cudaEvent_t begun = event();
    std::vector<cudaEvent_t> done(count);
    for (auto &one : done) one = event();
    std::vector<float *> leaves(count);
    for (auto &leaf : leaves) leaf = on_device(12 * 128);
    float *light = on_device(1), *shown = pinned(1);
    return [=](int step) {
        for (int hour = 0; hour < 10; ++hour) {
            if (forked) CHECK(cudaEventRecord(begun, all[0]));
            for (int k = 0; k < count; ++k) {
                cudaStream_t stream = all[forked ? k : 0];
                if (forked && k) CHECK(cudaStreamWaitEvent(stream, begun, 0));
                react<3><<<12, 128, 0, stream>>>(leaves[k], 12 * 128, 50000 + 2000 * k, 0.98f), launched();
                if (forked && k) {
                    CHECK(cudaEventRecord(done[k], stream));
                }
            }
            if (forked)
                for (int k = 1; k < count; ++k) CHECK(cudaStreamWaitEvent(all[0], done[k], 0));
            for (int k = 0; k < count; ++k) total<<<1, 256, 0, all[0]>>>(leaves[k], 12 * 128, light), launched();
        }
        if (step % 5 == 4) {  // how much light, now and then
            CHECK(cudaMemcpyAsync(shown, light, sizeof(float), cudaMemcpyDeviceToHost, all[0]));
            CHECK(cudaStreamSynchronize(all[0]));
        }
    };
}
CASE(canopies_ill, "forest-canopies") { return canopies(false); }
CASE(canopies_cured, "forest-canopies.cured") { return canopies(true); }

// ---- healthy, graphs: 300 small kernels a step, but in a graph: the GPU goes from one to the next.
CASE(epidemic_healthy, "epidemic-days") {
    const int w = 512, h = 512;
    float *infected = on_device(w * h), *next = on_device(w * h);
    cudaStream_t stream = streams(1, cudaStreamNonBlocking)[0];
    cudaGraph_t graph;
    cudaGraphExec_t runs;
    diffuse<<<dim3(w / 32, h / 8), dim3(32, 8), 0, stream>>>(infected, next, w, h, 0.2f), launched();  // loaded before the capture
    react<2><<<1024, 256, 0, stream>>>(infected, w * h, 1, 0.97f), launched();
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int day = 0; day < 100; ++day) {
        diffuse<<<dim3(w / 32, h / 8), dim3(32, 8), 0, stream>>>(infected, next, w, h, 0.2f), launched();
        diffuse<<<dim3(w / 32, h / 8), dim3(32, 8), 0, stream>>>(next, infected, w, h, 0.1f), launched();
        react<2><<<1024, 256, 0, stream>>>(infected, w * h, 300, 0.97f), launched();
    }
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&runs, graph, 0));
    return [=](int step) {
        for (int part = 0; part < 4; ++part) CHECK(cudaGraphLaunch(runs, stream));
        if (step % 10 == 9) CHECK(cudaStreamSynchronize(stream));
    };
}

// ---- healthy, gpu-busy: a residual is read each step, but that of the step before: kernels are always queued.
CASE(turbine_healthy, "turbine-flow") {
    const int w = 4096, h = 2048;
    float *flow = on_device(w * h), *next = on_device(w * h), *residual = on_device(2), *shown = pinned(2);
    cudaStream_t stream = streams(1, cudaStreamNonBlocking)[0];
    cudaEvent_t done[2] = {event(), event()};
    return [=](int step) {
        for (int part = 0; part < 30; ++part) {
            diffuse<<<dim3(w / 32, h / 8), dim3(32, 8), 0, stream>>>(flow, next, w, h, 0.2f), launched();
            react<4><<<2112, 256, 0, stream>>>(next, w * h, 100, 0.99f), launched();
            diffuse<<<dim3(w / 32, h / 8), dim3(32, 8), 0, stream>>>(next, flow, w, h, 0.2f), launched();
        }
        int now = step % 2;
        CHECK(cudaMemsetAsync(residual + now, 0, sizeof(float), stream));
        total<<<1056, 256, 0, stream>>>(flow, w * h, residual + now), launched();
        CHECK(cudaMemcpyAsync(shown + now, residual + now, sizeof(float), cudaMemcpyDeviceToHost, stream));
        CHECK(cudaEventRecord(done[now], stream));
        if (step) {
            CHECK(cudaEventSynchronize(done[1 - now]));
            if (shown[1 - now] != shown[1 - now]) printf("diverged\n");
        }
    };
}

// ---- healthy, gpu-busy: 64 MB come in a step, but pinned, a strip ahead, beside kernels that take longer.
CASE(strips_healthy, "sonar-strips") {
    const size_t n = 16 * M;
    float *from = pinned(2 * n), *strip[2] = {on_device(n), on_device(n)};
    auto all = streams(2, cudaStreamNonBlocking);  // copies, kernels
    cudaEvent_t come[2] = {event(), event()}, used[2] = {event(), event()};
    float *first = strip[0], *second = strip[1];
    cudaEvent_t come0 = come[0], come1 = come[1], used0 = used[0], used1 = used[1];
    return [=](int step) {
        bool odd = step % 2;
        float *data = odd ? second : first;
        cudaEvent_t arrived = odd ? come1 : come0, finished = odd ? used1 : used0;
        CHECK(cudaStreamWaitEvent(all[0], finished, 0));
        CHECK(cudaMemcpyAsync(data, from + (odd ? n : 0), n * sizeof(float), cudaMemcpyHostToDevice, all[0]));
        CHECK(cudaEventRecord(arrived, all[0]));
        CHECK(cudaStreamWaitEvent(all[1], arrived, 0));
        for (int beam = 0; beam < 4; ++beam) react<4><<<2112, 256, 0, all[1]>>>(data, n, 600, 0.99f), launched();
        CHECK(cudaEventRecord(finished, all[1]));
    };
}

int main(int argc, char **argv) { return run_cases(argc, argv); }
