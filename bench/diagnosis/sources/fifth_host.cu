// The fifth part's host sides: programs that drive the GPU badly in one way, or well. NAME.cured is the same work without it.
#include "host_harness.h"
#include <numeric>

#define EACH(i, n) (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < (n); i += (size_t)gridDim.x * blockDim.x)

// Some work on each element: `rounds` pairs of FMA.
__global__ void evolve(const float *in, float *out, size_t n, int rounds) {
    for EACH(i, n) {
        float x = in[i], v = 0.01f;
        for (int r = 0; r < rounds; ++r) v = fmaf(-0.01f, x, v), x = fmaf(0.01f, v, x);
        out[i] = x;
    }
}
__global__ void add_sum(const float *a, const float *b, float *sum, size_t n) {
    float own = 0;
    for EACH(i, n) own = fmaf(a[i], b[i], own);
    for (int step = 16; step; step /= 2) own += __shfl_xor_sync(~0u, own, step);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, own);
}

// launch-bound: matrices of 128 by 128 are factorised, pivot by pivot, two small kernels each (ill: the launches bind), or by a block each, in shared memory (cured)
__global__ void divide_column(float *a, int n, int pivot) {
    int row = pivot + 1 + threadIdx.x;
    if (row < n) a[row * n + pivot] /= a[pivot * n + pivot];
}
__global__ void subtract_rows(float *a, int n, int pivot) {
    int row = pivot + 1 + blockIdx.x, column = pivot + 1 + threadIdx.x;
    if (column < n) a[row * n + column] -= a[row * n + pivot] * a[pivot * n + column];
}
__global__ void set_up(float *a, int n) {
    for EACH(i, (size_t)n * n) a[i] = i / n == i % n ? n : 0.5f + 0.001f * (i % 97);
}
__global__ void factorise(float *all, int n) {
    extern __shared__ float s[];
    float *a = all + (size_t)blockIdx.x * n * n;
    for (int k = threadIdx.x; k < n * n; k += blockDim.x) s[k] = a[k];
    int column = threadIdx.x % 128, group = threadIdx.x / 128, groups = blockDim.x / 128;
    for (int pivot = 0; pivot + 1 < n; ++pivot) {
        __syncthreads();
        if (threadIdx.x > pivot && threadIdx.x < n) s[threadIdx.x * n + pivot] /= s[pivot * n + pivot];
        __syncthreads();
        if (column > pivot)
            for (int row = pivot + 1 + group; row < n; row += groups) s[row * n + column] -= s[row * n + pivot] * s[pivot * n + column];
    }
    __syncthreads();
    for (int k = threadIdx.x; k < n * n; k += blockDim.x) a[k] = s[k];
}
static Step factors(bool pivots) {
    int n = 128, many = 6;
    float *all = on_device((size_t)many * n * n);
    CHECK(cudaFuncSetAttribute(factorise, cudaFuncAttributeMaxDynamicSharedMemorySize, n * n * 4));
    return [=](int) {
        for (int m = 0; m < many; ++m) set_up<<<16, 256>>>(all + (size_t)m * n * n, n);
        if (pivots)
            for (int m = 0; m < many; ++m)
                for (int pivot = 0; pivot + 1 < n; ++pivot) {
                    divide_column<<<1, 128>>>(all + (size_t)m * n * n, n, pivot);
                    subtract_rows<<<n - 1 - pivot, 128>>>(all + (size_t)m * n * n, n, pivot);
                }
        else
            factorise<<<many, 1024, n * n * 4>>>(all, n);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(factors_ill, "beam-elements") { return factors(true); }
CASE(factors_cured, "beam-elements.cured") { return factors(false); }

// sync-each-operation: a step of a plasma of 240 short kernels, the device asked for errors after each (ill: each waits for the host's return), or at the end (cured)
static Step plasma(bool each) {
    size_t n = M / 2;
    float *e = on_device(n), *b = on_device(n), *j = on_device(n);
    return [=](int) {
        auto check = [=] {
            CHECK(cudaGetLastError());
            if (each) CHECK(cudaDeviceSynchronize());
        };
        for (int sub = 0; sub < 80; ++sub) {
            evolve<<<528, 256>>>(e, j, n, 60);
            check();
            evolve<<<528, 256>>>(j, b, n, 30);
            check();
            evolve<<<528, 256>>>(b, e, n, 40);
            check();
        }
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(plasma_ill, "plasma-sheath") { return plasma(true); }
CASE(plasma_cured, "plasma-sheath.cured") { return plasma(false); }

// scalar-reads: conjugate gradients, whose two products of vectors go to the host in each of 60 rounds, for it to divide (ill: two waits a round), or stay (cured)
__global__ void laplacian(const float *p, float *q, int nx, int ny) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    size_t i = (size_t)y * nx + x;
    q[i] = 4.01f * p[i] - (x ? p[i - 1] : 0) - (x + 1 < nx ? p[i + 1] : 0) - (y ? p[i - nx] : 0) - (y + 1 < ny ? p[i + nx] : 0);
}
__global__ void along(float *x, float *r, const float *p, const float *q, float alpha, const float *up, const float *down, size_t n) {
    if (up) alpha = *up / (*down + 1e-20f);
    for EACH(i, n) x[i] = fmaf(alpha, p[i], x[i]), r[i] = fmaf(-alpha, q[i], r[i]);
}
__global__ void turn(float *p, const float *r, float beta, const float *up, const float *down, size_t n) {
    if (up) beta = *up / (*down + 1e-20f);
    for EACH(i, n) p[i] = fmaf(beta, p[i], r[i]);
}
__global__ void ones(float *x, float *r, float *p, size_t n) {
    for EACH(i, n) x[i] = 0, r[i] = 1e-3f * (i % 101), p[i] = 1e-3f * (i % 101);
}
static Step conjugate(bool to_host) {
    int nx = 512, ny = 512, rounds = 60;
    size_t n = (size_t)nx * ny;
    float *x = on_device(n), *r = on_device(n), *p = on_device(n), *q = on_device(n), *sums = on_device(2 * rounds + 4);
    return [=](int) {
        ones<<<264, 256>>>(x, r, p, n);
        CHECK(cudaMemsetAsync(sums, 0, (2 * rounds + 4) * sizeof(float)));
        add_sum<<<132, 256>>>(r, r, sums, n);
        float before = 0, pq = 0, after = 0;
        if (to_host) CHECK(cudaMemcpy(&before, sums, 4, cudaMemcpyDeviceToHost));
        for (int k = 0; k < rounds; ++k) {
            float *rr = sums + 2 * k, *s = sums + 2 * k + 1, *next = sums + 2 * k + 2;
            laplacian<<<dim3(nx / 256, ny), 256>>>(p, q, nx, ny);
            add_sum<<<132, 256>>>(p, q, s, n);
            if (to_host) CHECK(cudaMemcpy(&pq, s, 4, cudaMemcpyDeviceToHost));
            along<<<264, 256>>>(x, r, p, q, before / (pq + 1e-20f), to_host ? nullptr : rr, s, n);
            add_sum<<<132, 256>>>(r, r, next, n);
            if (to_host) CHECK(cudaMemcpy(&after, next, 4, cudaMemcpyDeviceToHost));
            turn<<<264, 256>>>(p, r, after / (before + 1e-20f), to_host ? nullptr : next, rr, n);
            before = after;
        }
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(conjugate_ill, "heat-in-a-plate") { return conjugate(true); }
CASE(conjugate_cured, "heat-in-a-plate.cured") { return conjugate(false); }

// pageable-copies: a map of 32 MB comes back to a vector (ill: staged by the driver, at some GB/s) or to pinned memory (cured)
static Step maps(bool pins) {
    size_t n = 8 * M;
    float *a = on_device(n), *b = on_device(n), *host = pins ? pinned(n) : (float *)calloc(n, 4);
    for (size_t i = 0; i < n; i += 1024) host[i] = 1;
    return [=](int) {
        evolve<<<1056, 256>>>(a, b, n, 60);
        evolve<<<1056, 256>>>(b, a, n, 60);
        CHECK(cudaMemcpyAsync(host, a, n * 4, cudaMemcpyDeviceToHost));
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(maps_ill, "maps-of-rain") { return maps(false); }
CASE(maps_cured, "maps-of-rain.cured") { return maps(true); }

// no-copy-overlap: 12 volumes go in, are worked on and come out, pinned, in one stream (ill), or in three (cured); kernels are about as long as copies
static Step volumes(int ways) {
    size_t n = 2 * M;
    std::vector<float *> host, in, out;
    for (int k = 0; k < 12; ++k) host.push_back(pinned(n));
    for (int k = 0; k < 3; ++k) in.push_back(on_device(n)), out.push_back(on_device(n));
    auto own = streams(ways, cudaStreamNonBlocking);
    return [=](int) {
        for (int k = 0; k < 12; ++k) {
            cudaStream_t stream = own[k % ways];
            CHECK(cudaMemcpyAsync(in[k % 3], host[k], n * 4, cudaMemcpyHostToDevice, stream));
            evolve<<<528, 256, 0, stream>>>(in[k % 3], out[k % 3], n, 1200);
            CHECK(cudaMemcpyAsync(host[k], out[k % 3], n * 4, cudaMemcpyDeviceToHost, stream));
        }
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(volumes_ill, "slabs-of-a-scan") { return volumes(1); }
CASE(volumes_cured, "slabs-of-a-scan.cured") { return volumes(3); }

// small-copies: a window of 1500 rows of 1 kB of a larger picture, pinned, row by row (ill: 1500 copies) or as a rectangle (cured: one)
static Step window(bool rows) {
    int width = 4096, height = 1500, w = 256;
    float *picture = pinned((size_t)width * height), *part = on_device((size_t)w * height), *out = on_device((size_t)w * height);
    cudaStream_t stream = streams(1, cudaStreamNonBlocking)[0];
    return [=](int index) {
        const float *from = picture + index * 64 % 2048;
        if (rows)
            for (int y = 0; y < height; ++y) CHECK(cudaMemcpyAsync(part + (size_t)y * w, from + (size_t)y * width, w * 4, cudaMemcpyHostToDevice, stream));
        else
            CHECK(cudaMemcpy2DAsync(part, w * 4, from, width * 4, w * 4, height, cudaMemcpyHostToDevice, stream));
        evolve<<<264, 256, 0, stream>>>(part, out, (size_t)w * height, 600);
        CHECK(cudaStreamSynchronize(stream));
    };
}
CASE(window_ill, "regions-of-slides") { return window(true); }
CASE(window_cured, "regions-of-slides.cured") { return window(false); }

// allocation-in-loop: a filter allocates and frees its two scratch fields of 64 MB in each of 6 calls (ill: each waits for the GPU and maps memory), or has them (cured)
static Step filter(bool allocates) {
    size_t n = 16 * M;
    float *field = on_device(n), *kept[2] = {on_device(n), on_device(n)};
    return [=](int) {
        for (int pass = 0; pass < 6; ++pass) {
            float *first = kept[0], *second = kept[1];
            if (allocates) {
                CHECK(cudaMalloc(&first, n * 4));
                CHECK(cudaMalloc(&second, n * 4));
            }
            evolve<<<1056, 256>>>(field, first, n, 4);
            evolve<<<1056, 256>>>(first, second, n, 4);
            evolve<<<1056, 256>>>(second, field, n, 4);
            if (allocates) {
                CHECK(cudaFree(first));
                CHECK(cudaFree(second));
            }
        }
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(filter_ill, "denoised-volume") { return filter(true); }
CASE(filter_cured, "denoised-volume.cured") { return filter(false); }

// page-faults: a managed mesh of 32 MB, of which the host sets a number in each of 8192 pages a step (ill: pages go there and back by faults), or sends the numbers,
// which a kernel puts in their places (cured)
__global__ void place(const float *values, float *mesh, int many) {
    for EACH(i, (size_t)many) mesh[i * 1024] = values[i];
}
static Step mesh(bool managed) {
    size_t n = 8 * M;
    int many = n / 1024;
    float *points, *out = on_device(n), *values = pinned(many), *sent = on_device(many);
    if (managed) {
        CHECK(cudaMallocManaged(&points, n * 4));
        memset(points, 0, n * 4);
    } else
        points = on_device(n);
    return [=](int index) {
        if (managed)
            for (int k = 0; k < many; ++k) points[(size_t)k * 1024] = 0.001f * (k + index);
        else {
            for (int k = 0; k < many; ++k) values[k] = 0.001f * (k + index);
            CHECK(cudaMemcpyAsync(sent, values, many * 4, cudaMemcpyHostToDevice));
            place<<<32, 256>>>(sent, points, many);
        }
        evolve<<<1056, 256>>>(points, out, n, 40);
        evolve<<<1056, 256>>>(out, points, n, 40);
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(mesh_ill, "moving-boundary") { return mesh(true); }
CASE(mesh_cured, "moving-boundary.cured") { return mesh(false); }

// default-stream: 4 robots' chains of kernels of 24 blocks, in streams, with a clock that ticks in the legacy default stream after each round (ill: it waits for all,
// and all for it), or in a stream of its own that none waits for (cured)
__global__ void tick(float *clock) { *clock += 1; }
static Step robots(bool legacy) {
    size_t n = 24 * 256;
    auto own = streams(5, legacy ? cudaStreamDefault : cudaStreamNonBlocking);
    std::vector<float *> state;
    for (int k = 0; k < 4; ++k) state.push_back(on_device(n));
    float *clock = on_device(1);
    return [=](int) {
        for (int round = 0; round < 20; ++round)
            for (int k = 0; k < 4; ++k) {
                evolve<<<24, 256, 0, own[k]>>>(state[k], state[k], n, 8000);
                tick<<<1, 1, 0, legacy ? cudaStreamLegacy : own[4]>>>(clock);
            }
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(robots_ill, "four-robots") { return robots(true); }
CASE(robots_cured, "four-robots.cured") { return robots(false); }

// kernels-not-concurrent: spectra of 24 stars, a kernel of 10 blocks each, in the order of a loop, in one stream (ill) or a stream a star (cured)
static Step stars(int ways) {
    size_t n = 10 * 256;
    auto own = streams(ways, cudaStreamNonBlocking);
    std::vector<float *> star;
    for (int k = 0; k < 24; ++k) star.push_back(on_device(n));
    return [=](int) {
        for (int k = 0; k < 24; ++k) {
            evolve<<<10, 256, 0, own[k % ways]>>>(star[k], star[k], n, 12000);
            evolve<<<10, 256, 0, own[k % ways]>>>(star[k], star[k], n, 6000);
        }
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(stars_ill, "two-dozen-stars") { return stars(1); }
CASE(stars_cured, "two-dozen-stars.cured") { return stars(24); }

// kernels-not-concurrent: subdomains have streams, but each waits for an event of the one before, whose result it does not read (ill), or only the last waits (cured)
static Step domains(bool chained) {
    size_t n = 12 * 256;
    int many = 10;
    auto own = streams(many, cudaStreamNonBlocking);
    std::vector<float *> domain;
    std::vector<cudaEvent_t> done(many);
    for (int k = 0; k < many; ++k) {
        domain.push_back(on_device(n));
        CHECK(cudaEventCreateWithFlags(&done[k], cudaEventDisableTiming));
    }
    return [=](int) {
        for (int round = 0; round < 3; ++round)
            for (int k = 0; k < many; ++k) {
                if (chained && k) CHECK(cudaStreamWaitEvent(own[k], done[k - 1], 0));
                evolve<<<12, 256, 0, own[k]>>>(domain[k], domain[k], n, 10000);
                CHECK(cudaEventRecord(done[k], own[k]));
                if (k == many - 1)
                    for (int other = 0; other < many; ++other) {
                        if (other < k && !chained) CHECK(cudaStreamWaitEvent(own[k], done[other], 0));
                    }
                if (k == many - 1) {
                    evolve<<<12, 256, 0, own[k]>>>(domain[k], domain[k], n, 200);
                    CHECK(cudaEventRecord(done[k], own[k]));
                    CHECK(cudaStreamWaitEvent(own[0], done[k], 0));
                }
            }
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(domains_ill, "ten-basins") { return domains(true); }
CASE(domains_cured, "ten-basins.cured") { return domains(false); }

// file-io: a field of 16 MB is written to a file in each step (ill: the step waits for it), or in each twentieth (cured)
static Step snapshots(int every) {
    size_t n = 4 * M;
    float *a = on_device(n), *b = on_device(n), *host = pinned(n);
    std::string path = std::string(getenv("DIAGNOSIS_FILES") ? getenv("DIAGNOSIS_FILES") : "/tmp") + "/field-" + std::to_string(getpid());
    return [=](int index) {
        for (int k = 0; k < 5; ++k) {
            evolve<<<1056, 256>>>(a, b, n, 300);
            evolve<<<1056, 256>>>(b, a, n, 300);
        }
        CHECK(cudaMemcpyAsync(host, a, n * 4, cudaMemcpyDeviceToHost));
        CHECK(cudaDeviceSynchronize());
        if (index % every == every - 1) {
            FILE *file = fopen(path.c_str(), "wb");
            if (!file || fwrite(host, 4, n, file) != n) exit(1);
            fclose(file);
            remove(path.c_str());
        }
    };
}
CASE(snapshots_ill, "ocean-fields") { return snapshots(1); }
CASE(snapshots_cured, "ocean-fields.cured") { return snapshots(20); }

// periodic-slow-iteration: each sixth step 8 MB go to the host, which sums and bins them (ill: some 10 ms), or a kernel does (cured)
__global__ void bin(const float *x, uint32_t *count, float *sum, size_t n) {
    __shared__ uint32_t own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    float total = 0;
    for EACH(i, n) total += x[i], atomicAdd(&own[(uint32_t)(__float_as_uint(x[i]) >> 12) & 255], 1);
    __syncthreads();
    atomicAdd(&count[threadIdx.x], own[threadIdx.x]);
    for (int step = 16; step; step /= 2) total += __shfl_xor_sync(~0u, total, step);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, total);
}
__global__ void scatter_start(float *x, size_t n) {
    for EACH(i, n) x[i] = 1e-3f * (i % 977);
}
static Step turbulence(bool on_host) {
    size_t n = 2 * M;
    float *a = on_device(n), *b = on_device(n), *sum = on_device(1), *host = pinned(n);
    uint32_t *count = (uint32_t *)on_device(256);
    scatter_start<<<528, 256>>>(a, n);
    return [=](int index) {
        for (int k = 0; k < 8; ++k) {
            evolve<<<1056, 256>>>(a, b, n, 600);
            evolve<<<1056, 256>>>(b, a, n, 600);
        }
        if (index % 6 == 5 && on_host) {
            CHECK(cudaMemcpy(host, a, n * 4, cudaMemcpyDeviceToHost));
            double total = 0;
            std::vector<uint32_t> bins(256);
            for (size_t i = 0; i < n; ++i) {
                uint32_t bits;
                memcpy(&bits, host + i, 4);
                total += std::sqrt((double)host[i] * host[i] + 1e-9), ++bins[bits >> 12 & 255];
            }
            float back = total;
            CHECK(cudaMemcpy(sum, &back, 4, cudaMemcpyHostToDevice));
        } else if (index % 6 == 5)
            bin<<<264, 256>>>(a, count, sum, n);
        CHECK(cudaDeviceSynchronize());
    };
}
CASE(turbulence_ill, "turbulent-jet") { return turbulence(true); }
CASE(turbulence_cured, "turbulent-jet.cured") { return turbulence(false); }

// ---- healthy: 150 launches a step, each of some 20 us, far ahead of the GPU, which waits for none; one wait a step
CASE(galaxy_healthy, "disk-of-gas") {
    size_t n = 4 * M;
    float *a = on_device(n), *b = on_device(n);
    return [=](int index) {
        for (int k = 0; k < 150; ++k) evolve<<<2112, 256>>>(k % 2 ? b : a, k % 2 ? a : b, n, 80);
        if (index % 10 == 9) CHECK(cudaDeviceSynchronize());
    };
}

// ---- healthy: managed memory that lives on the GPU, and one number read by a pinned copy after 8 ms of kernels
CASE(crystal_healthy, "growing-crystal") {
    size_t n = 16 * M;
    float *a, *b = on_device(n), *sum = on_device(1), *seen = pinned(1);
    CHECK(cudaMallocManaged(&a, n * 4));
    evolve<<<1056, 256>>>(b, a, n, 1);  // the GPU touches it first
    CHECK(cudaDeviceSynchronize());
    return [=](int) {
        for (int k = 0; k < 4; ++k) {
            evolve<<<1056, 256>>>(a, b, n, 1000);
            evolve<<<1056, 256>>>(b, a, n, 1000);
        }
        add_sum<<<132, 256>>>(a, b, sum, n);
        CHECK(cudaMemcpyAsync(seen, sum, 4, cudaMemcpyDeviceToHost));
        CHECK(cudaDeviceSynchronize());
    };
}

// ---- healthy: 160 kernels of some microseconds, as a graph that is replayed
CASE(neurons_healthy, "spiking-neurons") {
    size_t n = M / 2;
    float *v = on_device(n), *w = on_device(n);
    cudaStream_t stream = streams(1, cudaStreamNonBlocking)[0];
    cudaGraph_t captured;
    cudaGraphExec_t replay;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int k = 0; k < 80; ++k) {
        evolve<<<528, 256, 0, stream>>>(v, w, n, 100);
        evolve<<<528, 256, 0, stream>>>(w, v, n, 100);
    }
    CHECK(cudaStreamEndCapture(stream, &captured));
    CHECK(cudaGraphInstantiate(&replay, captured, 0));
    return [=](int index) {
        CHECK(cudaGraphLaunch(replay, stream));
        if (index % 5 == 4) CHECK(cudaStreamSynchronize(stream));
    };
}

int main(int argc, char **argv) { return run_cases(argc, argv); }
