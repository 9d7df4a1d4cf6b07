// The fourth part's host sides: programs that drive the GPU badly in one way, or well. NAME.cured is the same work without it.
#include "host_harness.h"
#include <future>
#include <memory>

#define EACH(i, n) (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < (n); i += (size_t)gridDim.x * blockDim.x)

__global__ void smooth(const float *in, const float *right, float *out, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= n) return;
    float l = x ? in[y * n + x - 1] : 0, r = x + 1 < n ? in[y * n + x + 1] : 0, u = y ? in[(y - 1) * n + x] : 0, d = y + 1 < n ? in[(y + 1) * n + x] : 0;
    out[y * n + x] = 0.2f * in[y * n + x] + 0.2f * (l + r + u + d - right[y * n + x]);
}
__global__ void coarsen(const float *fine, float *coarse, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < n) coarse[y * n + x] = 0.25f * (fine[4 * y * n + 2 * x] + fine[4 * y * n + 2 * x + 1] + fine[(4 * y + 2) * n + 2 * x] + fine[(4 * y + 2) * n + 2 * x + 1]);
}
__global__ void refine(const float *coarse, float *fine, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < n) fine[y * n + x] += coarse[y / 2 * (n / 2) + x / 2];
}
__global__ void update(float *data, size_t n, int passes) {
    for EACH(i, n) {
        float x = data[i];
        for (int p = 0; p < passes; ++p) x = fmaf(x, 0.996f, 0.002f);
        data[i] = x;
    }
}
__global__ void derive(const float *in, float *out, size_t n, int passes) {
    for EACH(i, n) {
        float x = in[i];
        for (int p = 0; p < passes; ++p) x = fmaf(x, 0.996f, 0.002f);
        out[i] = x;
    }
}
__global__ void assign(const float *points, const float *centres, int *nearest, int *changed, int n) {
    int moved = 0;
    for EACH(i, (size_t)n) {
        float x = points[i], least = 1e9f;
        int best = 0;
        for (int c = 0; c < 64; ++c) {
            float d = fabsf(x - centres[c] - 0.01f * c);
            if (d < least) least = d, best = c;
        }
        moved |= nearest[i] != best;
        nearest[i] = best;
    }
    if (__syncthreads_or(moved) && threadIdx.x == 0) atomicAdd(changed, 1);
}

// launch-bound: cycles over eight grids from 256 by 256 to 2 by 2, kernel by kernel (ill) or as a graph (cured)
static Step cycles(bool graph) {
    std::vector<float *> fields, others, rights;
    for (int n = 256; n >= 2; n /= 2) fields.push_back(on_device(n * n)), others.push_back(on_device(n * n)), rights.push_back(on_device(n * n));
    cudaStream_t stream = streams(1, cudaStreamNonBlocking)[0];
    auto all = [=] {
        for (int cycle = 0; cycle < 10; ++cycle) {
            int n = 256;
            for (size_t level = 0; level < fields.size(); ++level, n /= 2) {
                int block = std::min(n, 128);
                smooth<<<dim3(n / block, n), block, 0, stream>>>(fields[level], rights[level], others[level], n);
                smooth<<<dim3(n / block, n), block, 0, stream>>>(others[level], rights[level], fields[level], n);
                if (n > 2) coarsen<<<dim3((n / 2 + block - 1) / block, n / 2), block, 0, stream>>>(fields[level], rights[level + 1], n / 2);
            }
            for (int level = (int)fields.size() - 2; level >= 0; --level) {
                n = 256 >> level;
                int block = std::min(n, 128);
                refine<<<dim3(n / block, n), block, 0, stream>>>(fields[level + 1], fields[level], n);
                smooth<<<dim3(n / block, n), block, 0, stream>>>(fields[level], rights[level], others[level], n);
            }
        }
        CHECK(cudaGetLastError());
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
CASE(cycles_ill, "grids-of-eight-sizes") { return cycles(false); }
CASE(cycles_cured, "grids-of-eight-sizes.cured") { return cycles(true); }

// sync-each-operation: 48 tiles of a picture, two kernels each, a stream waited for after each tile (ill) or the last (cured)
static Step tiles(bool each) {
    size_t n = 1 * M;
    std::vector<float *> data;
    for (int t = 0; t < 48; ++t) data.push_back(on_device(n));
    cudaStream_t stream = streams(1, cudaStreamNonBlocking)[0];
    return [=](int) {
        for (int t = 0; t < 48; ++t) {
            update<<<1056, 256, 0, stream>>>(data[t], n, 40);
            update<<<1056, 256, 0, stream>>>(data[t], n, 80);
            if (each || t == 47) CHECK(cudaStreamSynchronize(stream));
        }
    };
}
CASE(tiles_ill, "tiles-in-turn") { return tiles(true); }
CASE(tiles_cured, "tiles-in-turn.cured") { return tiles(false); }

// scalar-reads: groups of points, whose number of changes is read after each of 50 rounds (ill) or after the last (cured)
static Step groups(bool read) {
    int n = 1 * M;
    float *points = on_device(n), *centres = on_device(64);
    int *nearest = (int *)on_device(n), *changed = (int *)on_device(1);
    return [=](int) {
        int moved = 0;
        for (int round = 0; round < 50; ++round) {
            CHECK(cudaMemsetAsync(changed, 0, 4, 0));
            assign<<<528, 256>>>(points, centres, nearest, changed, n);
            update<<<1, 64>>>(centres, 64, 20);
            if (read || round == 49) CHECK(cudaMemcpy(&moved, changed, 4, cudaMemcpyDeviceToHost));
            if (moved < 0) break;
        }
    };
}
CASE(groups_ill, "groups-of-points") { return groups(true); }
CASE(groups_cured, "groups-of-points.cured") { return groups(false); }

// no-copy-overlap: fields leave the GPU before the next is computed, in a stream (ill), or while it is, in another (cured); pinned
static Step fields(bool overlaps) {
    const int parts = 10;
    size_t n = 4 * M;
    auto all = streams(2, cudaStreamNonBlocking);
    float *state = on_device(n), *out[2] = {on_device(n), on_device(n)};
    std::vector<float *> host;
    for (int p = 0; p < parts; ++p) host.push_back(pinned(n));
    std::vector<cudaEvent_t> ready(2), left(2);
    for (int s = 0; s < 2; ++s) {
        CHECK(cudaEventCreateWithFlags(&ready[s], cudaEventDisableTiming));
        CHECK(cudaEventCreateWithFlags(&left[s], cudaEventDisableTiming));
    }
    float *a = out[0], *b = out[1];
    return [=](int) {
        for (int p = 0; p < parts; ++p) {
            float *own = p % 2 ? b : a;
            cudaStream_t copies = overlaps ? all[1] : all[0];
            for (int k = 0; k < 3; ++k) update<<<1056, 256, 0, all[0]>>>(state, n, 700);
            if (overlaps) CHECK(cudaStreamWaitEvent(all[0], left[p % 2], 0));
            derive<<<1056, 256, 0, all[0]>>>(state, own, n, 300);
            if (overlaps) {
                CHECK(cudaEventRecord(ready[p % 2], all[0]));
                CHECK(cudaStreamWaitEvent(all[1], ready[p % 2], 0));
            }
            CHECK(cudaMemcpyAsync(host[p], own, n * 4, cudaMemcpyDeviceToHost, copies));
            if (overlaps) CHECK(cudaEventRecord(left[p % 2], all[1]));
        }
        for (auto s : all) CHECK(cudaStreamSynchronize(s));
    };
}
CASE(fields_ill, "fields-go-out") { return fields(false); }
CASE(fields_cured, "fields-go-out.cured") { return fields(true); }

// small-copies: the edge of a field, 160 rows of 64 bytes, goes out row by row (ill) or by one copy of two dimensions (cured)
static Step edges(bool rows) {
    const int height = 160, pitch = 4096 * 4;
    char *device = (char *)on_device((size_t)height * 4096), *host = (char *)pinned(height * 16);
    size_t n = 4 * M;
    float *data = on_device(n);
    return [=](int) {
        update<<<1056, 256>>>(data, n, 500);
        if (rows)
            for (int r = 0; r < height; ++r) CHECK(cudaMemcpyAsync(host + r * 64, device + (size_t)r * pitch, 64, cudaMemcpyDeviceToHost, 0));
        else
            CHECK(cudaMemcpy2DAsync(host, 64, device, pitch, 64, height, cudaMemcpyDeviceToHost, 0));
        CHECK(cudaStreamSynchronize(0));
    };
}
CASE(edges_ill, "edge-of-field") { return edges(true); }
CASE(edges_cured, "edge-of-field.cured") { return edges(false); }

// allocation-in-loop: a list of results grows by 2 MB twelve times, in memory allocated anew and copied (ill), or reserved (cured)
static Step grown(bool anew) {
    size_t piece = 512 * 1024, n = 8 * M;
    float *data = on_device(n), *reserved = on_device(piece * 12);
    return [=](int) {
        float *list = anew ? nullptr : reserved;
        for (size_t k = 0; k < 12; ++k) {
            update<<<1056, 256>>>(data, n, 250);
            if (anew) {
                float *longer;
                CHECK(cudaMalloc(&longer, (k + 1) * piece * 4));
                if (list) {
                    CHECK(cudaMemcpyAsync(longer, list, k * piece * 4, cudaMemcpyDeviceToDevice, 0));
                    CHECK(cudaFree(list));
                }
                list = longer;
            }
            derive<<<528, 256>>>(data, list + k * piece, piece, 20);
        }
        CHECK(cudaStreamSynchronize(0));
        if (anew) CHECK(cudaFree(list));
    };
}
CASE(grown_ill, "growing-list") { return grown(true); }
CASE(grown_cured, "growing-list.cured") { return grown(false); }

// page-faults: an array of 32 MB that the GPU writes and the host adds up is managed (ill), or copied to pinned memory (cured)
static Step added(bool managed) {
    size_t n = 8 * M;
    float *shared;
    CHECK(cudaMallocManaged(&shared, n * 4));
    float *data = on_device(n), *device = managed ? shared : on_device(n), *host = managed ? shared : pinned(n);
    auto total = std::make_shared<double>(0);
    return [=](int) {
        for (int k = 0; k < 4; ++k) update<<<1056, 256>>>(data, n, 1000);
        derive<<<1056, 256>>>(data, device, n, 300);
        if (!managed) CHECK(cudaMemcpyAsync(host, device, n * 4, cudaMemcpyDeviceToHost, 0));
        CHECK(cudaDeviceSynchronize());
        for (size_t i = 0; i < n; i += 256) *total += host[i];
    };
}
CASE(added_ill, "added-by-host") { return added(true); }
CASE(added_cured, "added-by-host.cured") { return added(false); }

// default-stream: three solvers in streams of their own, while a counter is cleared in the default stream now and then: streams
// that wait for it (ill), or not (cured)
static Step solvers(bool blocking) {
    auto all = streams(3, blocking ? cudaStreamDefault : cudaStreamNonBlocking);
    size_t n = 40 * 256;
    float *counter = on_device(64);
    std::vector<float *> data;
    for (int s = 0; s < 3; ++s) data.push_back(on_device(n));
    return [=](int) {
        for (int round = 0; round < 24; ++round)
            for (int s = 0; s < 3; ++s) {
                update<<<40, 256, 0, all[s]>>>(data[s], n, 5000 + 1500 * s);
                CHECK(cudaMemsetAsync(counter + s, 0, 4, 0));
            }
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(solvers_ill, "three-solvers") { return solvers(true); }
CASE(solvers_cured, "three-solvers.cured") { return solvers(false); }

// kernels-not-concurrent: 40 books of options, of 5 blocks and two kernels each, in a stream (ill) or in ten (cured)
static Step books(int count) {
    auto all = streams(count, cudaStreamNonBlocking);
    size_t n = 5 * 256;
    std::vector<float *> data;
    for (int b = 0; b < 40; ++b) data.push_back(on_device(n));
    return [=](int) {
        for (int b = 0; b < 40; ++b) {
            update<<<5, 256, 0, all[b % count]>>>(data[b], n, 20000 + 300 * (b % 7));
            update<<<5, 256, 0, all[b % count]>>>(data[b], n, 8000);
        }
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(books_ill, "option-books") { return books(1); }
CASE(books_cured, "option-books.cured") { return books(10); }

// file-io: blocks of an index of 24 MB are read from a file before each step (ill), or by a second thread during the last (cured)
static Step index_blocks(bool waits) {
    size_t bytes = 24 * (size_t)M, n = 8 * M;
    std::string path = std::string(getenv("DIAGNOSIS_FILES") ? getenv("DIAGNOSIS_FILES") : "/tmp") + "/index-" + std::to_string(getpid());
    float *host[2] = {pinned(bytes / 4), pinned(bytes / 4)}, *device = on_device(bytes / 4), *data = on_device(n);
    int file = open(path.c_str(), O_RDWR | O_CREAT, 0666);
    if (file < 0 || write(file, host[0], bytes) != (ssize_t)bytes) exit(1);
    unlink(path.c_str());
    auto load = [=](float *to) {
        for (size_t at = 0; at < bytes; at += 256 * 1024)
            if (pread(file, (char *)to + at, 256 * 1024, at) != 256 * 1024) exit(1);
    };
    float *a = host[0], *b = host[1];
    auto ahead = std::make_shared<std::future<void>>();
    return [=](int index) {
        float *own = index % 2 ? b : a, *other = index % 2 ? a : b;
        if (!waits && ahead->valid())
            ahead->get();
        else
            load(own);
        if (!waits) *ahead = std::async(std::launch::async, load, other);
        CHECK(cudaMemcpyAsync(device, own, bytes, cudaMemcpyHostToDevice, 0));
        for (int k = 0; k < 16; ++k) update<<<1056, 256>>>(data, n, 1200);
        CHECK(cudaStreamSynchronize(0));
    };
}
CASE(index_ill, "index-blocks") { return index_blocks(true); }
CASE(index_cured, "index-blocks.cured") { return index_blocks(false); }

// pageable-copies: six pieces of a model's 48 MB come from std::vector (ill) or page-locked memory (cured), each before its kernel
static Step layers(bool ordinary) {
    size_t n = 2 * M;
    auto kept = std::make_shared<std::vector<std::vector<float>>>();
    std::vector<float *> host, device;
    for (int k = 0; k < 6; ++k) {
        if (ordinary) kept->push_back(std::vector<float>(n, 0.5f));
        host.push_back(ordinary ? kept->back().data() : pinned(n));
        device.push_back(on_device(n));
    }
    return [=](int) {
        (void)kept;
        for (int k = 0; k < 6; ++k) {
            CHECK(cudaMemcpyAsync(device[k], host[k], n * 4, cudaMemcpyHostToDevice, 0));
            update<<<1056, 256>>>(device[k], n, 2500);
        }
        CHECK(cudaStreamSynchronize(0));
    };
}
CASE(layers_ill, "layers-come-in") { return layers(true); }
CASE(layers_cured, "layers-come-in.cured") { return layers(false); }

// periodic-slow-iteration: each fifth step the host sorts a million keys (ill), or a second thread has (cured)
static Step ordered(bool waits) {
    const int count = 1 * M;
    size_t n = 16 * M;
    float *data = on_device(n), *keys = on_device(count), *host = pinned(count);
    auto order = [=] {
        uint32_t seed = 9;
        for (int i = 0; i < count; ++i) seed = seed * 1664525u + 1013904223u, host[i] = seed * 2.3e-10f;
        std::sort(host, host + count);
    };
    auto ahead = std::make_shared<std::future<void>>();
    return [=](int index) {
        if (index % 5 == 4) {
            if (waits || !ahead->valid())
                order();
            else
                ahead->get();
            CHECK(cudaMemcpyAsync(keys, host, count * 4, cudaMemcpyHostToDevice, 0));
            CHECK(cudaStreamSynchronize(0));
        }
        if (!waits && !ahead->valid()) *ahead = std::async(std::launch::async, order);
        for (int k = 0; k < 24; ++k) update<<<1056, 256>>>(data, n, 1800);
        CHECK(cudaStreamSynchronize(0));
    };
}
CASE(ordered_ill, "particles-in-order") { return ordered(true); }
CASE(ordered_cured, "particles-in-order.cured") { return ordered(false); }

// data-loader: pictures of run lengths are decoded by the host before each step (ill), or by a thread during the one before (cured)
static Step decoded(bool waits) {
    const int runs = 1 * M, longest = 8;
    size_t n = (size_t)runs * longest, each = 8 * M;
    auto lengths = std::make_shared<std::vector<uint8_t>>(runs);
    for (int r = 0; r < runs; ++r) (*lengths)[r] = 1 + r * 7 % longest;
    float *host[2] = {pinned(n), pinned(n)}, *device = on_device(n), *data = on_device(each);
    auto decode = [=](float *to) {
        size_t at = 0;
        for (int r = 0; r < runs; ++r) {
            float value = std::sqrt((float)(r % 977));
            for (int k = 0; k < (*lengths)[r]; ++k) to[at++] = value;
        }
    };
    float *a = host[0], *b = host[1];
    auto ahead = std::make_shared<std::future<void>>();
    return [=](int index) {
        float *own = index % 2 ? b : a, *other = index % 2 ? a : b;
        if (!waits && ahead->valid())
            ahead->get();
        else
            decode(own);
        if (!waits) *ahead = std::async(std::launch::async, decode, other);
        CHECK(cudaMemcpyAsync(device, own, n * 4, cudaMemcpyHostToDevice, 0));
        derive<<<1056, 256>>>(device, data, each, 1000);
        for (int k = 0; k < 20; ++k) update<<<1056, 256>>>(data, each, 1200);
        CHECK(cudaStreamSynchronize(0));
    };
}
CASE(decoded_ill, "run-lengths") { return decoded(true); }
CASE(decoded_cured, "run-lengths.cured") { return decoded(false); }

// healthy: 240 kernels of some 30 us in two streams, launched far ahead; the host waits once
CASE(ahead_healthy, "far-ahead") {
    size_t n = 6 * M;
    auto all = streams(2, cudaStreamNonBlocking);
    float *a = on_device(n), *b = on_device(n);
    return [=](int) {
        for (int k = 0; k < 120; ++k) {
            update<<<1056, 256, 0, all[0]>>>(a, n, 120);
            update<<<1056, 256, 0, all[1]>>>(b, n, 120);
        }
        for (auto s : all) CHECK(cudaStreamSynchronize(s));
    };
}

// healthy: the host waits for each kernel, of which each takes 4 ms
CASE(patient_healthy, "waits-for-long-ones") {
    size_t n = 64 * (size_t)M;
    float *data = on_device(n);
    return [=](int) {
        for (int k = 0; k < 4; ++k) {
            update<<<1056, 256>>>(data, n, 1400);
            CHECK(cudaDeviceSynchronize());
        }
    };
}

// healthy: the next batch is prepared by the host and copied from page-locked memory beside kernels that take longer
CASE(batches_healthy, "next-batch-beside") {
    size_t n = 4 * M, each = 16 * M;
    auto all = streams(2, cudaStreamNonBlocking);
    float *host[2] = {pinned(n), pinned(n)}, *in[2] = {on_device(n), on_device(n)}, *data = on_device(each);
    cudaEvent_t came;
    CHECK(cudaEventCreateWithFlags(&came, cudaEventDisableTiming));
    float *h0 = host[0], *h1 = host[1], *d0 = in[0], *d1 = in[1];
    return [=](int index) {
        float *own = index % 2 ? d1 : d0, *next = index % 2 ? d0 : d1, *from = index % 2 ? h0 : h1;
        CHECK(cudaStreamWaitEvent(all[0], came, 0));
        derive<<<1056, 256, 0, all[0]>>>(own, data, n, 500);
        for (int k = 0; k < 14; ++k) update<<<1056, 256, 0, all[0]>>>(data, each, 1500);
        for (size_t i = 0; i < n; i += 64) from[i] = index + 1e-3f * i;
        CHECK(cudaMemcpyAsync(next, from, n * 4, cudaMemcpyHostToDevice, all[1]));
        CHECK(cudaEventRecord(came, all[1]));
        CHECK(cudaStreamSynchronize(all[1]));
        CHECK(cudaStreamSynchronize(all[0]));
    };
}

int main(int argc, char **argv) {
    return run_cases(argc, argv);
}
