// The third part's kernels: steps of programs of other fields, each with an illness in a kernel, or none. NAME.cured is the
// same work without it. Names of kernels say little, and the ill one is not always the longest.
#include "harness.h"

#include <algorithm>

#define M (1 << 20)
#define EACH(i, n) (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < (n); i += (size_t)gridDim.x * blockDim.x)

// healthy: signals times a response, complex numbers of 8 bytes, two a thread; DRAM binds
__global__ void apply(const float4 *__restrict__ a, const float4 *__restrict__ b, float4 *c, size_t n) {
    for EACH(i, n) {
        float4 u = a[i], v = b[i];
        c[i] = make_float4(u.x * v.x - u.y * v.y, u.x * v.y + u.y * v.x, u.z * v.z - u.w * v.w, u.z * v.w + u.w * v.z);
    }
}
CASE(spectra_healthy, "spectra-product") {
    size_t n = 24 * M;
    float4 *a = (float4 *)buffer<float>(4 * n), *b = (float4 *)buffer<float>(4 * n), *c = (float4 *)buffer<float>(4 * n);
    return [=] { LAUNCH(apply, 2112, 256, 0, a, b, c, n); };
}

// healthy: a filter of 9 by 9 whose weights are constants, 8 pixels a thread from registers; FP32 binds
__constant__ float weights[81];
__global__ void step2d(const float *__restrict__ in, float *__restrict__ out, int width) {
    int x = blockIdx.x * 128 + threadIdx.x, y = blockIdx.y * 8;
    float sums[8] = {};
#pragma unroll
    for (int r = 0; r < 16; ++r) {
        float row[9];
#pragma unroll
        for (int k = 0; k < 9; ++k) row[k] = in[(y + r) * (size_t)width + x + k];
#pragma unroll
        for (int o = 0; o < 8; ++o)
            if (r >= o && r - o < 9)
#pragma unroll
                for (int k = 0; k < 9; ++k) sums[o] = fmaf(row[k], weights[(r - o) * 9 + k], sums[o]);
    }
#pragma unroll
    for (int o = 0; o < 8; ++o) out[(y + o) * (size_t)width + x] = sums[o];
}
CASE(filter_healthy, "wide-filter") {
    int width = 8192 + 128, height = 8192 + 16;
    float *in = buffer<float>((size_t)width * height), *out = buffer<float>((size_t)width * height);
    return [=] { LAUNCH(step2d, dim3(64, 1024), 128, 0, in, out, width); };
}

// healthy: a look-up table of 20 MB, read again and again in order; L2 binds
__global__ void fold(const float4 *__restrict__ table, float *out, int n, int rounds) {
    float sum = 0;
    for (int r = 0; r < rounds; ++r) {
        int begin = (blockIdx.x + r * 7) % gridDim.x * (n / gridDim.x);
#pragma unroll 8
        for (int i = threadIdx.x; i < n / (int)gridDim.x; i += 512) {
            float4 v = table[begin + i];
            sum += v.x + v.y + v.z + v.w;
        }
    }
    out[blockIdx.x * 512 + threadIdx.x] = sum;
}
CASE(table_healthy, "table-rounds") {
    int n = 264 * 4096;
    float4 *table = (float4 *)buffer<float>(4 * (size_t)n);
    float *out = buffer<float>(264 * 512);
    return [=] { LAUNCH(fold, 264, 512, 0, table, out, n, 96); };
}

// uncoalesced-access: a sparse matrix of 96 values a row times a vector, a thread (ill) or a warp (cured) a row
__global__ void step_a(const float *__restrict__ values, const int *__restrict__ columns, const float *__restrict__ x, float *y, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int k = row * 96; k < row * 96 + 96; ++k) sum += values[k] * x[columns[k]];
    y[row] = sum;
}
__global__ void step_b(const float *__restrict__ values, const int *__restrict__ columns, const float *__restrict__ x, float *y, int rows) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0;
#pragma unroll
    for (int k = row * 96 + lane; k < row * 96 + 96; k += 32) sum += values[k] * x[columns[k]];
    for (int far = 16; far; far /= 2) sum += __shfl_down_sync(~0u, sum, far);
    if (!lane) y[row] = sum;
}
__global__ void banded(int *columns, int rows) {
    for EACH(e, rows * (size_t)96) columns[e] = (int)min((size_t)rows - 1, e / 96 + e % 96);
}
static Step sparse(bool thread_a_row) {
    int rows = 768 * 1024;
    float *values = buffer<float>(rows * (size_t)96), *x = buffer<float>(rows), *y = buffer<float>(rows);
    int *columns = buffer<int>(rows * (size_t)96);
    banded<<<2048, 256>>>(columns, rows);
    CHECK(cudaGetLastError());
    return [=] {
        if (thread_a_row)
            LAUNCH(step_a, rows / 256, 256, 0, values, columns, x, y, rows);
        else
            LAUNCH(step_b, rows / 8, 256, 0, values, columns, x, y, rows);
    };
}
CASE(sparse_ill, "sparse-product") { return sparse(true); }
CASE(sparse_cured, "sparse-product.cured") { return sparse(false); }

// array-of-structures: boxes of 48 bytes, of which an interval of 8 is tested; after a healthy product
struct Box {
    float low[3], high[3];
    int id, parent, left, right, flags, age;
};
__global__ void pass1(const Box *boxes, float2 query, int *out, size_t n) {
    for EACH(i, n) out[i] = boxes[i].low[0] < query.y && boxes[i].high[0] > query.x;
}
__global__ void pass1(const float *low, const float *high, float2 query, int *out, size_t n) {
    for EACH(i, n) out[i] = low[i] < query.y && high[i] > query.x;
}
static Step boxes(bool structures) {
    size_t n = 32 * M;
    float *a = buffer<float>(structures ? 12 * n : n), *b = buffer<float>(n);
    int *out = buffer<int>(n);
    float4 *x = (float4 *)buffer<float>(32 * M), *y = (float4 *)buffer<float>(32 * M), *z = (float4 *)buffer<float>(32 * M);
    return [=] {
        LAUNCH(apply, 2112, 256, 0, x, y, z, (size_t)(8 * M));
        if (structures)
            LAUNCH(pass1, 4224, 256, 0, (const Box *)a, make_float2(0.2f, 0.7f), out, n);
        else
            LAUNCH(pass1, 4224, 256, 0, a, b, make_float2(0.2f, 0.7f), out, n);
    };
}
CASE(boxes_ill, "boxes") { return boxes(true); }
CASE(boxes_cured, "boxes.cured") { return boxes(false); }

// random-gather: a level of a search over a graph of 12 neighbours a vertex, numbered at random (ill) or by place (cured)
__global__ void advance(const int *__restrict__ level, const int *__restrict__ edges, int *next, int n, int now) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int own = level[v], reached = 0;
    for (int k = 0; k < 12; ++k) reached |= level[edges[k * (size_t)n + v]] == now;
    next[v] = reached ? min(own, now + 1) : own;
}
__global__ void wire(int *edges, int n, bool at_random) {
    for EACH(e, 12 * (size_t)n) {
        size_t v = e % n, k = e / n;
        edges[e] = at_random ? (int)(hashed((uint32_t)(e * 2654435761u)) % n) : (int)((v + n + (k % 3 + 1) * (k & 1 ? 1 : -1) + (k / 4) * 4096) % n);
    }
}
static Step graph_levels(bool at_random) {
    int n = 32 * M;
    int *level = buffer<int>(n, 0, 9), *next = buffer<int>(n), *edges = buffer<int>(12 * (size_t)n);
    wire<<<4096, 256>>>(edges, n, at_random);
    CHECK(cudaGetLastError());
    return [=] { LAUNCH(advance, n / 256, 256, 0, level, edges, next, n, 4); };
}
CASE(levels_ill, "graph-levels") { return graph_levels(true); }
CASE(levels_cured, "graph-levels.cured") { return graph_levels(false); }

// narrow-access: pixels of three bytes become grey, a byte at a time (ill) or 16 pixels a thread (cured)
__global__ void tone(const uint8_t *in, uint8_t *out, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) out[i] = (77 * in[3 * i] + 150 * in[3 * i + 1] + 29 * in[3 * i + 2]) >> 8;
}
__global__ void tone16(const uint4 *in, uint4 *out, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= n) return;
    union { uint4 words[3]; uint8_t bytes[48]; } pixels;
    union { uint4 words; uint8_t bytes[16]; } grey;
    for (int k = 0; k < 3; ++k) pixels.words[k] = in[3 * i + k];
#pragma unroll
    for (int k = 0; k < 16; ++k) grey.bytes[k] = (77 * pixels.bytes[3 * k] + 150 * pixels.bytes[3 * k + 1] + 29 * pixels.bytes[3 * k + 2]) >> 8;
    out[i] = grey.words;
}
static Step colours(bool narrow) {
    size_t n = 160 * (size_t)M;
    uint8_t *in = buffer<uint8_t>(3 * n, 0, 255), *out = buffer<uint8_t>(n);
    return [=] {
        if (narrow)
            LAUNCH(tone, n / 128, 128, 0, in, out, n);
        else
            LAUNCH(tone16, n / 16 / 128, 128, 0, (const uint4 *)in, (uint4 *)out, n / 16);
    };
}
CASE(colours_ill, "grey-pixels") { return colours(true); }
CASE(colours_cured, "grey-pixels.cured") { return colours(false); }

// bank-conflicts: counts of 64 kinds, own ones a thread; a thread's counts together (ill) or a kind's together (cured)
template <bool TOGETHER> __global__ void tally(const uint4 *in, int *out, int n) {
    __shared__ int counts[64 * 128];
    int t = threadIdx.x;
    for (int b = 0; b < 64; ++b) counts[b * 128 + t] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 128 + t; i < n; i += gridDim.x * 128) {
        uint4 v = in[i];
        uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            int kind = w[k / 4] >> (k % 4 * 8) & 63;
            ++counts[TOGETHER ? t * 64 + kind : kind * 128 + t];
        }
    }
    __syncthreads();
    if (t < 64) {
        int sum = 0;
        for (int s = 0; s < 128; ++s) sum += counts[TOGETHER ? s * 64 + t : t * 128 + (s + t) % 128];
        atomicAdd(&out[t], sum);
    }
}
static Step tallied(bool together) {
    int n = 24 * M;
    uint4 *in = (uint4 *)buffer<uint32_t>(4 * (size_t)n, 0, 4294967040.0);
    int *out = buffer<int>(64);
    return [=] {
        if (together)
            LAUNCH(tally<true>, 132 * 6, 128, 0, in, out, n);
        else
            LAUNCH(tally<false>, 132 * 6, 128, 0, in, out, n);
    };
}
CASE(tallied_ill, "kinds-counted") { return tallied(true); }
CASE(tallied_cured, "kinds-counted.cured") { return tallied(false); }

// register-spills: a Cholesky factor of 10 by 10 a thread, with 32 registers (ill) or what it needs (cured)
template <int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS) solve_small(const float *in, float *out, int n, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a[55];
#pragma unroll
    for (int e = 0; e < 55; ++e) a[e] = in[e * (size_t)n + i] + 0.1f;
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int c = 0; c < 10; ++c) {
            int cc = c * (c + 1) / 2;
            float root = rsqrtf(fabsf(a[cc + c]) + 8.0f);
#pragma unroll
            for (int r = c; r < 10; ++r) a[r * (r + 1) / 2 + c] *= root;
#pragma unroll
            for (int r = c + 1; r < 10; ++r)
#pragma unroll
                for (int k = c + 1; k <= r; ++k)
                    a[r * (r + 1) / 2 + k] = fmaf(-a[r * (r + 1) / 2 + c], a[k * (k + 1) / 2 + c], a[r * (r + 1) / 2 + k]);
        }
    }
#pragma unroll
    for (int e = 0; e < 55; ++e) out[e * (size_t)n + i] = a[e];
}
static Step factors(bool few) {
    int n = 640 * 1024;
    float *in = buffer<float>(55 * (size_t)n), *out = buffer<float>(55 * (size_t)n);
    return [=] {
        if (few)
            LAUNCH((solve_small<1024, 2>), n / 1024, 1024, 0, in, out, n, 16);
        else
            LAUNCH((solve_small<128, 4>), n / 128, 128, 0, in, out, n, 16);
    };
}
CASE(factors_ill, "small-factors") { return factors(true); }
CASE(factors_cured, "small-factors.cured") { return factors(false); }

// local-array-indexing: the 8 nearest of many points, put into a sorted list by an index (ill) or by unrolled steps (cured)
template <bool INDEXED> __global__ void nearest(const float2 *__restrict__ points, float *out, int n) {
    __shared__ float2 tile[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    float2 own = points[i];
    float best[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) best[k] = 1e9f;
    for (int begin = 0; begin < n; begin += 256) {
        tile[threadIdx.x] = points[begin + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < 256; ++j) {
            float dx = tile[j].x - own.x, dy = tile[j].y - own.y, d = dx * dx + dy * dy;
            if (INDEXED) {
                int at = 8;
                while (at > 0 && best[at - 1] > d) --at;
                if (at < 8) {
#pragma unroll 1
                    for (int k = 7; k > at; --k) best[k] = best[k - 1];
                    best[at] = d;
                }
            } else if (d < best[7]) {
#pragma unroll
                for (int k = 0; k < 8; ++k) {
                    float low = fminf(best[k], d);
                    d = fmaxf(best[k], d);
                    best[k] = low;
                }
            }
        }
        __syncthreads();
    }
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) sum += best[k];
    out[i] = sum;
}
static Step neighbours(bool indexed) {
    int n = 132 * 256 * 8;
    float2 *points = (float2 *)buffer<float>(2 * (size_t)n);
    float *out = buffer<float>(n);
    return [=] {
        if (indexed)
            LAUNCH(nearest<true>, n / 256, 256, 0, points, out, 4096);
        else
            LAUNCH(nearest<false>, n / 256, 256, 0, points, out, 4096);
    };
}
CASE(neighbours_ill, "eight-nearest") { return neighbours(true); }
CASE(neighbours_cured, "eight-nearest.cured") { return neighbours(false); }

// divergence: contracts of unequal numbers of dates, mixed (ill) or sorted by them (cured); beside a healthy filter
__global__ void kernel7(const int *dates, float *prices, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 1, sum = 0;
    uint32_t seed = hashed(i);
    for (int d = dates[i]; d > 0; --d) {
        seed = seed * 1664525u + 1013904223u;
        float z = (int)seed * 4.6566e-10f;
        s = fmaf(s, 0.02f * z, s * 1.0001f);
        sum = fmaf(fmaxf(s - 1.0f, 0.0f), 0.01f, sum * 0.999f);
    }
    prices[i] = sum;
}
static Step contracts(bool mixed) {
    int n = 4 * M;
    std::vector<int> dates(n);
    uint32_t seed = 7;
    for (int &d : dates) {
        seed = seed * 1664525u + 1013904223u;
        d = (seed >> 16) % 16 == 0 ? 1200 : 40 + (seed >> 20) % 50;
    }
    if (!mixed) std::sort(dates.begin(), dates.end(), std::greater<int>());
    int *at = copied(dates);
    float *prices = buffer<float>(n);
    int width = 8192 + 128;
    float *in = buffer<float>((size_t)width * (4096 + 16)), *out = buffer<float>((size_t)width * (4096 + 16));
    return [=] {
        LAUNCH(step2d, dim3(64, 512), 128, 0, in, out, width);
        LAUNCH(kernel7, n / 128, 128, 0, at, prices, n);
    };
}
CASE(contracts_ill, "contracts") { return contracts(true); }
CASE(contracts_cured, "contracts.cured") { return contracts(false); }

// fp64-by-accident: forces between atoms of a cell, with constants of double (ill) or float (cured)
template <typename T> __global__ void pairs(const float4 *__restrict__ atoms, float *energy, int cell) {
    __shared__ float4 tile[128];
    size_t i = blockIdx.x * 128 + threadIdx.x;
    float4 own = atoms[i];
    float sum = 0;
    tile[threadIdx.x] = atoms[(blockIdx.x ^ 1) * 128 + threadIdx.x];
    __syncthreads();
    for (int round = 0; round < cell; ++round)
#pragma unroll 4
        for (int j = 0; j < 128; ++j) {
            float dx = tile[j].x - own.x, dy = tile[j].y - own.y, dz = tile[j].z - own.z;
            float r2 = dx * dx + dy * dy + dz * dz + 0.01f;
            float s = r2 * r2 * r2;
            sum += (float)(T(0.5) * s - T(1.7) * r2);
        }
    energy[i] = sum;
}
static Step atoms(bool doubles) {
    int n = 132 * 128 * 96;
    float4 *in = (float4 *)buffer<float>(4 * (size_t)n);
    float *energy = buffer<float>(n);
    return [=] {
        if (doubles)
            LAUNCH(pairs<double>, n / 128, 128, 0, in, energy, 4);
        else
            LAUNCH(pairs<float>, n / 128, 128, 0, in, energy, 4);
    };
}
CASE(atoms_ill, "atoms") { return atoms(true); }
CASE(atoms_cured, "atoms.cured") { return atoms(false); }

// special-functions: the equation of Kepler by 12 steps of Newton, by sine and cosine (ill) or their polynomials (cured)
template <bool SPECIAL> __global__ void orbit(const float *in, float *out, size_t n) {
    for EACH(i, n) {
        float mean = in[i], e = 0.3f, x = mean;
#pragma unroll
        for (int k = 0; k < 12; ++k) {
            float s, c, q = x * x;
            if (SPECIAL) {
                s = __sinf(x), c = __cosf(x);
            } else {
                s = x * fmaf(q, fmaf(q, fmaf(q, -1.98e-4f, 8.333e-3f), -0.16667f), 1.0f);
                c = fmaf(q, fmaf(q, fmaf(q, -1.3889e-3f, 4.1667e-2f), -0.5f), 1.0f);
            }
            x -= (x - e * s - mean) * fmaf(e, c, 0.7f);
        }
        out[i] = x;
    }
}
static Step orbits(bool special) {
    size_t n = 96 * (size_t)M;
    float *in = buffer<float>(n), *out = buffer<float>(n);
    return [=] {
        if (special)
            LAUNCH(orbit<true>, 2112, 256, 0, in, out, n);
        else
            LAUNCH(orbit<false>, 2112, 256, 0, in, out, n);
    };
}
CASE(orbits_ill, "kepler") { return orbits(true); }
CASE(orbits_cured, "kepler.cured") { return orbits(false); }

// integer-division: spins on a torus, whose neighbours are taken modulo its sizes (ill) or by comparing (cured)
template <bool DIVIDES> __global__ void flip(const int *__restrict__ spins, int *next, int nx, int ny, int nz) {
    size_t n = (size_t)nx * ny * nz;
    for EACH(i, n) {
        int x, y, z, l, r, u, d, f, b;
        if (DIVIDES) {
            x = i % nx, y = i / nx % ny, z = i / nx / ny;
            l = (x + nx - 1) % nx, r = (x + 1) % nx, u = (y + ny - 1) % ny, d = (y + 1) % ny, f = (z + nz - 1) % nz, b = (z + 1) % nz;
        } else {
            x = i & 511, y = i >> 9 & 511, z = i >> 18;
            l = x ? x - 1 : nx - 1, r = x + 1 < nx ? x + 1 : 0, u = y ? y - 1 : ny - 1, d = y + 1 < ny ? y + 1 : 0;
            f = z ? z - 1 : nz - 1, b = z + 1 < nz ? z + 1 : 0;
        }
        size_t plane = (size_t)nx * ny, row = z * plane + y * (size_t)nx;
        int sum = spins[row + l] + spins[row + r] + spins[z * plane + u * (size_t)nx + x] + spins[z * plane + d * (size_t)nx + x] +
                  spins[f * plane + y * (size_t)nx + x] + spins[b * plane + y * (size_t)nx + x];
        next[i] = sum > 3 ? 1 : 0;
    }
}
static Step torus(bool divides) {
    int *spins = buffer<int>(512 * 512 * 256, 0, 2), *next = buffer<int>(512 * 512 * 256);
    return [=] {
        if (divides)
            LAUNCH(flip<true>, 4224, 256, 0, spins, next, 512, 512, 256);
        else
            LAUNCH(flip<false>, 4224, 256, 0, spins, next, 512, 512, 256);
    };
}
CASE(torus_ill, "spins") { return torus(true); }
CASE(torus_cured, "spins.cured") { return torus(false); }

// contended-atomics: points are added to 12 centres, each for itself (ill) or a block together first (cured)
__global__ void update_centres(const float4 *points, float *centres, int n) {
    for EACH(i, n) {
        float4 p = points[i];
        float *own = centres + 4 * ((int)(p.x * 3) * 4 + (int)(p.y * 4));
        atomicAdd(own, p.x), atomicAdd(own + 1, p.y), atomicAdd(own + 2, p.z), atomicAdd(own + 3, p.w);
    }
}
__global__ void update_centres_together(const float4 *points, float *centres, int n) {
    __shared__ float sums[8][64];
    for (int e = threadIdx.x; e < 512; e += blockDim.x) sums[e / 64][e % 64] = 0;
    __syncthreads();
    for EACH(i, n) {
        float4 p = points[i];
        float *own = sums[threadIdx.x / 32 % 8] + 4 * ((int)(p.x * 3) * 4 + (int)(p.y * 4));
        atomicAdd(own, p.x), atomicAdd(own + 1, p.y), atomicAdd(own + 2, p.z), atomicAdd(own + 3, p.w);
    }
    __syncthreads();
    if (threadIdx.x < 48) {
        float sum = 0;
        for (int w = 0; w < 8; ++w) sum += sums[w][threadIdx.x];
        atomicAdd(&centres[threadIdx.x], sum);
    }
}
static Step clusters(bool contended) {
    int n = 2 * M;
    float4 *points = (float4 *)buffer<float>(4 * (size_t)n, 0, 0.999);
    float *centres = buffer<float>(64);
    float4 *x = (float4 *)buffer<float>(64 * M), *y = (float4 *)buffer<float>(64 * M), *z = (float4 *)buffer<float>(64 * M);
    return [=] {
        LAUNCH(apply, 2112, 256, 0, x, y, z, (size_t)(16 * M));
        if (contended)
            LAUNCH(update_centres, 1056, 256, 0, points, centres, n);
        else
            LAUNCH(update_centres_together, 1056, 256, 0, points, centres, n);
    };
}
CASE(clusters_ill, "centres") { return clusters(true); }
CASE(clusters_cured, "centres.cured") { return clusters(false); }

// barriers: pieces of 1024 are sorted in shared memory with a barrier a step (ill); short distances by shuffles (cured)
template <bool SHUFFLES> __global__ void arrange(const float *in, float *out) {
    __shared__ float keys[1024];
    int t = threadIdx.x;
    float own = in[blockIdx.x * (size_t)1024 + t];
    for (int size = 2; size <= 1024; size *= 2)
        for (int far = size / 2; far; far /= 2) {
            float other;
            if (SHUFFLES && far < 32) {
                other = __shfl_xor_sync(~0u, own, far);
            } else {
                keys[t] = own;
                __syncthreads();
                other = keys[t ^ far];
                __syncthreads();
            }
            bool up = (t & size) == 0, low = (t & far) == 0;
            own = up == low ? fminf(own, other) : fmaxf(own, other);
        }
    out[blockIdx.x * (size_t)1024 + t] = own;
}
static Step sorted(bool barriers) {
    size_t n = 48 * M;
    float *in = buffer<float>(n), *out = buffer<float>(n);
    return [=] {
        if (barriers)
            LAUNCH(arrange<false>, n / 1024, 1024, 0, in, out);
        else
            LAUNCH(arrange<true>, n / 1024, 1024, 0, in, out);
    };
}
CASE(sorted_ill, "sorted-pieces") { return sorted(true); }
CASE(sorted_cured, "sorted-pieces.cured") { return sorted(false); }

// tail-wave: 408 blocks where 396 fit (ill), or the same work in 396 (cured)
__global__ void __launch_bounds__(640, 3) evolve(float *fields, int rounds) {
    float *own = fields + (blockIdx.x * 640 + threadIdx.x) * 4;
    float a = own[0], b = own[1], c = own[2], d = own[3];
    for (int r = 0; r < rounds; ++r) {
        a = fmaf(a, 0.99f, 0.01f * b), b = fmaf(b, 0.98f, 0.01f * c), c = fmaf(c, 0.97f, 0.01f * d), d = fmaf(d, 0.96f, 0.01f * a);
    }
    own[0] = a, own[1] = b, own[2] = c, own[3] = d;
}
CASE(evolve_ill, "evolution") {
    float *fields = buffer<float>(408 * 640 * 4);
    return [=] { LAUNCH(evolve, 408, 640, 0, fields, 20000); };
}
CASE(evolve_cured, "evolution.cured") {
    float *fields = buffer<float>(396 * 640 * 4);
    return [=] { LAUNCH(evolve, 396, 640, 0, fields, 20606); };
}

// too-few-blocks: a recursive filter's power over 16 channels, a block (ill) or 66 blocks (cured) a channel; a healthy one too
__global__ void power(const float4 *signals, float *sums, int each, int passes) {
    int per = each / gridDim.x;
    const float4 *own = signals + blockIdx.y * (size_t)each + blockIdx.x * (size_t)per;
    float sum = 0;
    for (int i = threadIdx.x; i < per; i += blockDim.x) {
        float4 v = own[i];
        for (int p = 0; p < passes; ++p) v.x = fmaf(v.x, 0.9f, v.y), v.y = fmaf(v.y, 0.8f, v.z), v.z = fmaf(v.z, 0.7f, v.w), v.w = fmaf(v.w, 0.6f, v.x);
        sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    for (int far = 16; far; far /= 2) sum += __shfl_down_sync(~0u, sum, far);
    if (threadIdx.x % 32 == 0) atomicAdd(&sums[blockIdx.y], sum);
}
static Step channels(int blocks) {
    int each = 66 * 2048;
    float4 *signals = (float4 *)buffer<float>(16 * (size_t)each * 4);
    float *sums = buffer<float>(16);
    size_t n = 16 * M;
    float4 *a = (float4 *)buffer<float>(4 * n), *b = (float4 *)buffer<float>(4 * n), *c = (float4 *)buffer<float>(4 * n);
    return [=] {
        LAUNCH(power, dim3(blocks, 16), 512, 0, signals, sums, each, 12);
        LAUNCH(apply, 2112, 256, 0, a, b, c, n);
    };
}
CASE(channels_ill, "channel-power") { return channels(1); }
CASE(channels_cured, "channel-power.cured") { return channels(66); }

// unequal-blocks: tiles of a picture with unequal numbers of splats, a block a tile (ill) or a block a piece of a tile (cured)
__global__ void blend(const int2 *ranges, const float4 *__restrict__ splats, float *picture) {
    int2 range = ranges[blockIdx.x];
    float x = threadIdx.x % 16, y = threadIdx.x / 16, light = 0;
    for (int s = range.x; s < range.y; ++s) {
        float4 p = splats[s & 65535];
        float dx = p.x * 16 - x, dy = p.y * 16 - y;
        light = fmaf(fmaxf(1.0f - 0.05f * (dx * dx + dy * dy), 0.0f), p.w, light * 0.9999f);
    }
    atomicAdd(&picture[blockIdx.x % 1024 * 256 + threadIdx.x], light);
}
static Step tiles(bool pieces) {
    std::vector<int2> ranges;
    for (int t = 0; t < 1584; ++t) {
        int count = t % 99 == 98 ? 48000 : 1500;
        for (int begin = 0; begin < count; begin += pieces ? 1500 : count) ranges.push_back({t * 37 + begin, t * 37 + begin + (pieces ? 1500 : count)});
    }
    int blocks = ranges.size();
    int2 *at = copied(ranges);
    float4 *splats = (float4 *)buffer<float>(4 * 65536);
    float *picture = buffer<float>(1024 * 256);
    return [=] { LAUNCH(blend, blocks, 256, 0, at, splats, picture); };
}
CASE(tiles_ill, "splats") { return tiles(false); }
CASE(tiles_cured, "splats.cured") { return tiles(true); }

// occupancy-registers: a warp follows a chain of nodes of 128 bytes, with 120 numbers held in registers (ill) or read after
// it (cured)
template <bool HELD> __global__ void __launch_bounds__(128) resolve(const int *__restrict__ next, const float *__restrict__ state, float *out, int hops, int mask, int n) {
    int i = blockIdx.x * 128 + threadIdx.x, at = hashed(i / 32) & mask;
    float v[120];
    if (HELD) {
#pragma unroll
        for (int k = 0; k < 120; ++k) v[k] = state[(k & 7) * (size_t)n + i] * k;
#pragma unroll
        for (int k = 0; k < 120; ++k) asm volatile("" : "+f"(v[k]));
    }
    for (int hop = 0; hop < hops; ++hop) at = __shfl_sync(~0u, next[at * 32 + threadIdx.x % 32], hop & 31) & mask;
    float sum = at;
    if (HELD) {
#pragma unroll
        for (int k = 0; k < 120; ++k) asm volatile("" : "+f"(v[k]));
#pragma unroll
        for (int k = 0; k < 120; ++k) sum = fmaf(sum, 0.5f, v[k]);
    } else {
#pragma unroll
        for (int k = 0; k < 120; ++k) sum = fmaf(sum, 0.5f, state[(k & 7) * (size_t)n + i] * k);
    }
    out[i] = sum;
}
static Step chained(bool held) {
    int n = M, mask = 128 * 1024 - 1;
    int *next = buffer<int>(4 * M, 0, mask);
    float *state = buffer<float>(8 * (size_t)n), *out = buffer<float>(n);
    return [=] {
        if (held)
            LAUNCH(resolve<true>, n / 128, 128, 0, next, state, out, 60, mask, n);
        else
            LAUNCH(resolve<false>, n / 128, 128, 0, next, state, out, 60, mask, n);
    };
}
CASE(chained_ill, "hash-chains") { return chained(true); }
CASE(chained_cured, "hash-chains.cured") { return chained(false); }

// occupancy-block-size: warps walk down trees of nodes of 128 bytes, in blocks of 32 threads (ill) or 256 (cured)
__global__ void stroll(const int *__restrict__ graph, int *ends, int hops, int mask) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, at = hashed(i / 32 * 3 + 1) & mask;
    for (int hop = 0; hop < hops; ++hop) at = __shfl_sync(~0u, graph[at * 32 + threadIdx.x % 32], hop & 31) & mask;
    ends[i] = at;
}
static Step walkers(int block) {
    int mask = 64 * 1024 - 1, n = 4 * M;
    int *graph = buffer<int>(2 * M, 0, mask), *ends = buffer<int>(n);
    return [=] { LAUNCH(stroll, n / block, block, 0, graph, ends, 32, mask); };
}
CASE(walkers_ill, "walkers") { return walkers(32); }
CASE(walkers_cured, "walkers.cured") { return walkers(256); }

// dependent-chain: random numbers of a generator, one stream a thread of few warps (ill) or eight (cured)
template <int STREAMS> __global__ void draw(uint32_t *out, int rounds) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, x[STREAMS];
#pragma unroll
    for (int s = 0; s < STREAMS; ++s) x[s] = hashed(i * 8 + s) | 1;
    for (int r = 0; r < rounds; ++r)
#pragma unroll
        for (int s = 0; s < STREAMS; ++s) {
            x[s] ^= x[s] << 13;
            x[s] ^= x[s] >> 17;
            x[s] ^= x[s] << 5;
            x[s] = x[s] * 1664525u + 1013904223u;
        }
    uint32_t sum = 0;
#pragma unroll
    for (int s = 0; s < STREAMS; ++s) sum ^= x[s];
    out[i] = sum;
}
CASE(draw_ill, "draws") {
    uint32_t *out = buffer<uint32_t>(132 * 128);
    return [=] { LAUNCH(draw<1>, 132, 128, 0, out, 80000); };
}
CASE(draw_cured, "draws.cured") {
    uint32_t *out = buffer<uint32_t>(132 * 128);
    return [=] { LAUNCH(draw<8>, 132, 128, 0, out, 10000); };
}

// l2-capacity: 12 planes of 64 MB, each point reads the same point of 5 planes; plane by plane (ill) or tile by tile (cured)
__global__ void through(const float4 *__restrict__ in, float4 *__restrict__ out, int plane, int depth, bool by_tile) {
    int tiles = plane / 256, z = by_tile ? blockIdx.x % depth : blockIdx.x / tiles, tile = by_tile ? blockIdx.x / depth : blockIdx.x % tiles;
    size_t at = tile * 256 + threadIdx.x;
    float4 sum = {};
#pragma unroll
    for (int k = 0; k < 5; ++k) {
        float4 v = in[(z + k) * (size_t)plane + at];
        sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
    out[z * (size_t)plane + at] = sum;
}
static Step planes(bool by_tile) {
    int plane = 4 * M, depth = 12;
    float4 *in = (float4 *)buffer<float>(4 * (size_t)plane * (depth + 4)), *out = (float4 *)buffer<float>(4 * (size_t)plane * depth);
    return [=] { LAUNCH(through, plane / 256 * depth, 256, 0, in, out, plane, depth, by_tile); };
}
CASE(planes_ill, "five-planes") { return planes(false); }
CASE(planes_cured, "five-planes.cured") { return planes(true); }

// unfused-multiply-add: fractal sums of complex numbers whose products and sums are kept apart (ill) or fused (cured)
template <bool APART> __device__ inline float mad(float a, float b, float c) {
    return APART ? __fadd_rn(__fmul_rn(a, b), c) : fmaf(a, b, c);
}
template <bool APART> __global__ void julia(const float2 *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float2 z = in[i], w = make_float2(z.y, z.x);
#pragma unroll 8
    for (int k = 0; k < 512; ++k) {
        float zx = mad<APART>(z.x, 0.62f, mad<APART>(-z.y, 0.31f, 0.1f)), wx = mad<APART>(w.x, 0.41f, mad<APART>(-w.y, 0.52f, 0.2f));
        z.y = mad<APART>(z.x, 0.31f, mad<APART>(z.y, 0.62f, 0.3f));
        w.y = mad<APART>(w.x, 0.52f, mad<APART>(w.y, 0.41f, 0.1f));
        z.x = zx, w.x = wx;
    }
    out[i] = z.x + z.y + w.x + w.y;
}
static Step fractal(bool apart) {
    int n = 6 * M;
    float2 *in = (float2 *)buffer<float>(2 * (size_t)n);
    float *out = buffer<float>(n);
    return [=] {
        if (apart)
            LAUNCH(julia<true>, n / 256, 256, 0, in, out, n);
        else
            LAUNCH(julia<false>, n / 256, 256, 0, in, out, n);
    };
}
CASE(fractal_ill, "complex-maps") { return fractal(true); }
CASE(fractal_cured, "complex-maps.cured") { return fractal(false); }

// healthy: FP32 where half would lose what is summed: 4 sums a thread, 3 loads of 16 bytes; both kernels at a roof
CASE(mixed_healthy, "product-and-filter") {
    size_t n = 16 * M;
    float4 *a = (float4 *)buffer<float>(4 * n), *b = (float4 *)buffer<float>(4 * n), *c = (float4 *)buffer<float>(4 * n);
    int width = 8192 + 128;
    float *in = buffer<float>((size_t)width * (4096 + 16)), *out = buffer<float>((size_t)width * (4096 + 16));
    return [=] {
        LAUNCH(apply, 2112, 256, 0, a, b, c, n);
        LAUNCH(step2d, dim3(64, 512), 128, 0, in, out, width);
    };
}

int main(int argc, char **argv) { return run_cases(argc, argv); }
