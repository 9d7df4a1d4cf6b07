// The second part's kernels: small steps of programs, each with an illness in a kernel, or none. NAME.cured is the same
// work without it. Where a step has several kernels, the ill one is not always the longest.
#include "harness.h"

#include <algorithm>
#include <cuda_fp16.h>
#include <mma.h>

#define M (1 << 20)

// Healthy company: reads and writes all of an array.
__global__ void axpy(float a, const float4 *x, float4 *y, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        float4 v = x[i], w = y[i];
        y[i] = make_float4(a * v.x + w.x, a * v.y + w.y, a * v.z + w.z, a * v.w + w.w);
    }
}

// uncoalesced-access: columns of an atmosphere, a thread a column; levels lie together (ill) or columns do (cured)
template <bool TOGETHER> __global__ void vertical_diffusion(const float *heat, float *out, int columns, int levels) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= columns) return;
    size_t step = TOGETHER ? 1 : columns, at = TOGETHER ? (size_t)c * levels : c;
    float below = heat[at], here = below;
    for (int k = 0; k < levels; ++k, at += step) {
        float above = k + 1 < levels ? heat[at + step] : here;
        out[at] = here + 0.1f * (below - 2 * here + above);
        below = here;
        here = above;
    }
}
static Step atmosphere(bool together) {
    const int columns = 384 * 1024, levels = 96;
    float *heat = buffer<float>((size_t)columns * levels), *out = buffer<float>((size_t)columns * levels);
    return [=] {
        if (together)
            LAUNCH(vertical_diffusion<true>, columns / 128, 128, 0, heat, out, columns, levels);
        else
            LAUNCH(vertical_diffusion<false>, columns / 128, 128, 0, heat, out, columns, levels);
    };
}
CASE(atmosphere_ill, "air-columns") { return atmosphere(true); }
CASE(atmosphere_cured, "air-columns.cured") { return atmosphere(false); }

// array-of-structures, called a copy: the worth of orders, of which two of sixteen fields are used
struct Order {
    float price, quantity, more[14];
};
__global__ void memcpy_kernel(const Order *orders, float *worth, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        worth[i] = orders[i].price * orders[i].quantity;
}
__global__ void memcpy_kernel(const float *price, const float *quantity, float *worth, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        worth[i] = price[i] * quantity[i];
}
static Step orders(bool structures) {
    size_t n = 24 * M;
    float *worth = buffer<float>(n), *a = buffer<float>(structures ? n * 16 : n), *b = buffer<float>(n);
    float4 *x = (float4 *)buffer<float>(64 * M), *y = (float4 *)buffer<float>(64 * M);
    return [=] {
        if (structures)
            LAUNCH(memcpy_kernel, 4224, 256, 0, (const Order *)a, worth, n);
        else
            LAUNCH(memcpy_kernel, 4224, 256, 0, a, b, worth, n);
        LAUNCH(axpy, 2112, 256, 0, 0.5f, x, y, (size_t)(16 * M));
    };
}
CASE(orders_ill, "order-book") { return orders(true); }
CASE(orders_cured, "order-book.cured") { return orders(false); }

// random-gather: heat flows over the edges of a mesh, whose nodes are numbered at random (ill) or along the mesh (cured)
__global__ void flow(const float *__restrict__ heat, const int *__restrict__ neighbours, float *out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float sum = 0;
#pragma unroll
        for (int k = 0; k < 6; ++k) sum += heat[neighbours[(size_t)k * n + i]];
        out[i] = heat[i] + 0.1f * (sum - 6 * heat[i]);
    }
}
__global__ void number(int *neighbours, int n, bool at_random) {
    const int near[6] = {-1, 1, -1000, 1000, -40000, 40000};
    for (size_t e = blockIdx.x * (size_t)blockDim.x + threadIdx.x; e < 6 * (size_t)n; e += (size_t)gridDim.x * blockDim.x)
        neighbours[e] = at_random ? hashed((uint32_t)e) % n : (int)((e % n + near[e / n] + n) % n);
}
static Step mesh(bool at_random) {
    int n = 40 * M;
    float *heat = buffer<float>(n), *out = buffer<float>(n);
    int *neighbours = buffer<int>(6 * (size_t)n);
    number<<<2048, 256>>>(neighbours, n, at_random);
    CHECK(cudaGetLastError());
    return [=] { LAUNCH(flow, 8448, 256, 0, heat, neighbours, out, n); };
}
CASE(mesh_ill, "mesh-edges") { return mesh(true); }
CASE(mesh_cured, "mesh-edges.cured") { return mesh(false); }

// narrow-access: pixels of a byte above a threshold, a byte (ill) or 16 (cured) a thread
__global__ void segment(const uint8_t *in, uint8_t *out, int level) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    out[i] = in[i] > level ? 255 : 0;
}
__global__ void segment16(const uint4 *in, uint4 *out, int level) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    uint32_t l = 0x01010101u * level;
    uint4 v = in[i];
    out[i] = make_uint4(__vcmpgtu4(v.x, l), __vcmpgtu4(v.y, l), __vcmpgtu4(v.z, l), __vcmpgtu4(v.w, l));
}
static Step pixels(bool narrow) {
    size_t n = 256 * (size_t)M;
    uint8_t *in = buffer<uint8_t>(n, 0, 255), *out = buffer<uint8_t>(n, 0, 255);
    return [=] {
        if (narrow)
            LAUNCH(segment, n / 256, 256, 0, in, out, 90);
        else
            LAUNCH(segment16, n / 16 / 256, 256, 0, (const uint4 *)in, (uint4 *)out, 90);
    };
}
CASE(pixels_ill, "threshold") { return pixels(true); }
CASE(pixels_cured, "threshold.cured") { return pixels(false); }

// bank-conflicts: tridiagonal systems of 16 unknowns in shared memory, a thread a system: 16 (ill) or 17 words apart
template <int APART> __global__ void apply_filter(const float *in, float *out) {
    __shared__ float rhs[128 * APART], upper[128 * APART];
    size_t block = blockIdx.x * (size_t)2048;
    for (int e = threadIdx.x; e < 2048; e += 128) {
        rhs[e / 16 * APART + e % 16] = in[block + e];
        upper[e / 16 * APART + e % 16] = 0;
    }
    __syncthreads();
    float *d = rhs + threadIdx.x * APART, *u = upper + threadIdx.x * APART;
    for (int round = 0; round < 6; ++round) {
        float du = 0, dd = 0;
        for (int k = 0; k < 16; ++k) {
            float scale = 0.25f + 0.05f * du;
            u[k] = du = scale;
            d[k] = dd = (d[k] + dd) * scale;
        }
        for (int k = 14; k >= 0; --k) d[k] = dd = d[k] + u[k] * dd;
    }
    __syncthreads();
    for (int e = threadIdx.x; e < 2048; e += 128) out[block + e] = rhs[e / 16 * APART + e % 16];
}
static Step systems(bool conflicts) {
    size_t n = 64 * M;
    float *in = buffer<float>(n), *out = buffer<float>(n);
    return [=] {
        if (conflicts)
            LAUNCH(apply_filter<16>, n / 2048, 128, 0, in, out);
        else
            LAUNCH(apply_filter<17>, n / 2048, 128, 0, in, out);
    };
}
CASE(systems_ill, "tridiagonal") { return systems(true); }
CASE(systems_cured, "tridiagonal.cured") { return systems(false); }

// register-spills: rates of 56 species a thread, with 32 registers (ill) or what it needs (cured)
template <int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS) kinetics(const float *in, float *out, int n, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float y[56];
#pragma unroll
    for (int s = 0; s < 56; ++s) y[s] = in[s * (size_t)n + i];
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int s = 0; s < 56; ++s) y[s] += 1e-3f * (y[(s * 5 + 3) % 56] * y[(s * 11 + 7) % 56] - y[s] * y[(s + 29) % 56]);
    }
#pragma unroll
    for (int s = 0; s < 56; ++s) out[s * (size_t)n + i] = y[s];
}
static Step chemistry(bool few) {
    int n = 512 * 1024;
    float *in = buffer<float>(56 * (size_t)n), *out = buffer<float>(56 * (size_t)n);
    return [=] {
        if (few)
            LAUNCH((kinetics<256, 8>), n / 256, 256, 0, in, out, n, 40);
        else
            LAUNCH((kinetics<256, 2>), n / 256, 256, 0, in, out, n, 40);
    };
}
CASE(chemistry_ill, "kinetics") { return chemistry(true); }
CASE(chemistry_cured, "kinetics.cured") { return chemistry(false); }

// local-array-indexing: the median of 9 pixels, sorted by loops (ill) or unrolled ones (cured)
__device__ inline void ordered(float &a, float &b) {
    float low = fminf(a, b), high = fmaxf(a, b);
    a = low, b = high;
}
template <bool LOOPS> __global__ void denoise(const float *in, float *out, int width, int height) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    float w[9];
#pragma unroll
    for (int k = 0; k < 9; ++k) {
        int u = min(max(x + k % 3 - 1, 0), width - 1), v = min(max(y + k / 3 - 1, 0), height - 1);
        w[k] = in[v * (size_t)width + u];
    }
    if (LOOPS) {
#pragma unroll 1
        for (int a = 0; a < 5; ++a) {
#pragma unroll 1
            for (int b = 0; b < 8 - a; ++b) ordered(w[b], w[b + 1]);
        }
    } else {
#pragma unroll
        for (int a = 0; a < 5; ++a) {
#pragma unroll
            for (int b = 0; b < 8 - a; ++b) ordered(w[b], w[b + 1]);
        }
    }
    out[y * (size_t)width + x] = w[4];
}
static Step median(bool loops) {
    int width = 8192, height = 4096;
    float *in = buffer<float>((size_t)width * height), *out = buffer<float>((size_t)width * height);
    dim3 grid(width / 32, height / 8), block(32, 8);
    return [=] {
        if (loops)
            LAUNCH(denoise<true>, grid, block, 0, in, out, width, height);
        else
            LAUNCH(denoise<false>, grid, block, 0, in, out, width, height);
    };
}
CASE(median_ill, "median") { return median(true); }
CASE(median_cured, "median.cured") { return median(false); }

// divergence: neutrons collide 12 times, one in 16 of them 300 times; mixed (ill) or the long ones first (cured)
__global__ void transport(const int *collisions, float *energy, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float e = energy[i], x = 0.3f + 1e-7f * i;
    for (int c = collisions[i]; c > 0; --c) {
        x = 3.7f * x * (1 - x);
        e = e * (0.98f + 0.01f * x) + 1e-3f;
        x = fmaf(x, 0.999f, 1e-4f * e);
        e = fmaf(e, 0.999f, 1e-5f * x);
    }
    energy[i] = e;
}
static Step neutrons(bool mixed) {
    int n = 8 * M;
    std::vector<int> collisions(n);
    for (int i = 0; i < n; ++i) collisions[i] = (i * 2654435761u >> 16) % 16 == 0 ? 300 : 12;
    if (!mixed) std::sort(collisions.begin(), collisions.end(), std::greater<int>());
    int *counts = copied(collisions);
    float *energy = buffer<float>(n);
    float4 *x = (float4 *)buffer<float>(64 * M), *y = (float4 *)buffer<float>(64 * M);
    return [=] {
        LAUNCH(axpy, 2112, 256, 0, 0.5f, x, y, (size_t)(16 * M));
        LAUNCH(transport, n / 128, 128, 0, counts, energy, n);
    };
}
CASE(neutrons_ill, "neutrons") { return neutrons(true); }
CASE(neutrons_cured, "neutrons.cured") { return neutrons(false); }

// fp64-by-accident: constants without f in the correction of a lens
__global__ void undistort(const float2 *in, float2 *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float2 p = in[i], q = p;
    for (int round = 0; round < 24; ++round) {
        float r2 = q.x * q.x + q.y * q.y;
        float scale = 1.0 + 0.12 * r2 - 0.031 * r2 * r2;
        q.x = p.x * scale;
        q.y = p.y * scale;
    }
    out[i] = q;
}
__global__ void undistort_single(const float2 *in, float2 *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float2 p = in[i], q = p;
    for (int round = 0; round < 24; ++round) {
        float r2 = q.x * q.x + q.y * q.y;
        float scale = 1.0f + 0.12f * r2 - 0.031f * r2 * r2;
        q.x = p.x * scale;
        q.y = p.y * scale;
    }
    out[i] = q;
}
static Step lens(bool doubles) {
    int n = 24 * M;
    float2 *in = (float2 *)buffer<float>(2 * (size_t)n), *out = (float2 *)buffer<float>(2 * (size_t)n);
    return [=] {
        if (doubles)
            LAUNCH(undistort, n / 256, 256, 0, in, out, n);
        else
            LAUNCH(undistort_single, n / 256, 256, 0, in, out, n);
    };
}
CASE(lens_ill, "lens") { return lens(true); }
CASE(lens_cured, "lens.cured") { return lens(false); }

// special-functions: harmonics of a note by a cosine each (ill) or by Chebyshev's recurrence (cured)
template <bool COSINES> __global__ void synthesize(const float *strength, float *sound, int harmonics) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    float t = 1e-3f * (i & 4095), sum = 0;
    if (COSINES) {
        for (int k = 0; k < harmonics; ++k) sum += strength[k] * __cosf(k * t);
    } else {
        float c = __cosf(t), before = c, here = 1;
        for (int k = 0; k < harmonics; ++k) {
            sum += strength[k] * here;
            float next = 2 * c * here - before;
            before = here, here = next;
        }
    }
    sound[i] = sum;
}
static Step harmonics(bool cosines) {
    size_t n = 8 * M;
    float *strength = buffer<float>(256), *sound = buffer<float>(n);
    return [=] {
        if (cosines)
            LAUNCH(synthesize<true>, n / 256, 256, 0, strength, sound, 256);
        else
            LAUNCH(synthesize<false>, n / 256, 256, 0, strength, sound, 256);
    };
}
CASE(harmonics_ill, "harmonics") { return harmonics(true); }
CASE(harmonics_cured, "harmonics.cured") { return harmonics(false); }

// contended-atomics: a detector of 6 cells; each hit adds to global memory (ill), or a block's sum of them does (cured)
__global__ void tally(const float *hits, float *cells, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        atomicAdd(&cells[(int)(hits[i] * 6)], hits[i]);
}
__global__ void tally_by_block(const float *hits, float *cells, size_t n) {
    __shared__ float sums[8];
    float own[6] = {};
    if (threadIdx.x < 8) sums[threadIdx.x] = 0;
    __syncthreads();
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        float hit = hits[i];
        int cell = hit * 6;
#pragma unroll
        for (int c = 0; c < 6; ++c) own[c] += cell == c ? hit : 0;
    }
#pragma unroll
    for (int c = 0; c < 6; ++c) {
        for (int far = 16; far; far /= 2) own[c] += __shfl_down_sync(~0u, own[c], far);
        if (threadIdx.x % 32 == 0) atomicAdd(&sums[c], own[c]);
    }
    __syncthreads();
    if (threadIdx.x < 6) atomicAdd(&cells[threadIdx.x], sums[threadIdx.x]);
}
static Step detector(bool global) {
    size_t n = M / 2;
    float *hits = buffer<float>(n, 0, 0.999), *cells = buffer<float>(8);
    float4 *x = (float4 *)buffer<float>(128 * M), *y = (float4 *)buffer<float>(128 * M);
    return [=] {
        LAUNCH(axpy, 2112, 256, 0, 0.5f, x, y, (size_t)(32 * M));
        if (global)
            LAUNCH(tally, 528, 256, 0, hits, cells, n);
        else
            LAUNCH(tally_by_block, 528, 256, 0, hits, cells, n);
    };
}
CASE(detector_ill, "detector") { return detector(true); }
CASE(detector_cured, "detector.cured") { return detector(false); }

// barriers: running sums of 1024 numbers by doubling steps with barriers (ill) or by shuffles (cured)
__global__ void accumulate(const float *in, float *out) {
    __shared__ float sums[1024];
    size_t i = blockIdx.x * (size_t)1024 + threadIdx.x;
    sums[threadIdx.x] = in[i];
    __syncthreads();
    for (int far = 1; far < 1024; far *= 2) {
        float other = threadIdx.x >= far ? sums[threadIdx.x - far] : 0;
        __syncthreads();
        sums[threadIdx.x] += other;
        __syncthreads();
    }
    out[i] = sums[threadIdx.x];
}
__global__ void accumulate_shuffled(const float *in, float *out) {
    __shared__ float sums[32];
    size_t i = blockIdx.x * (size_t)1024 + threadIdx.x;
    float own = in[i];
    for (int far = 1; far < 32; far *= 2) {
        float other = __shfl_up_sync(~0u, own, far);
        if (threadIdx.x % 32 >= far) own += other;
    }
    if (threadIdx.x % 32 == 31) sums[threadIdx.x / 32] = own;
    __syncthreads();
    float before = threadIdx.x % 32 < threadIdx.x / 32 ? sums[threadIdx.x % 32] : 0;
    for (int far = 16; far; far /= 2) before += __shfl_xor_sync(~0u, before, far);
    out[i] = own + before;
}
static Step running(bool barriers) {
    size_t n = 128 * (size_t)M;
    float *in = buffer<float>(n), *out = buffer<float>(n);
    return [=] {
        if (barriers)
            LAUNCH(accumulate, n / 1024, 1024, 0, in, out);
        else
            LAUNCH(accumulate_shuffled, n / 1024, 1024, 0, in, out);
    };
}
CASE(running_ill, "running-sums") { return running(true); }
CASE(running_cured, "running-sums.cured") { return running(false); }

// too-few-blocks: the brightness of 28 planes, a block (ill) or 48 blocks (cured) a plane
__global__ void brightness(const float4 *planes, float *sums, size_t each) {
    size_t per = each / gridDim.x, begin = blockIdx.y * each + blockIdx.x * per;
    float sum = 0;
    for (size_t i = begin + threadIdx.x; i < begin + per; i += blockDim.x) {
        float4 v = planes[i];
        sum += v.x + v.y + v.z + v.w;
    }
    for (int far = 16; far; far /= 2) sum += __shfl_down_sync(~0u, sum, far);
    if (threadIdx.x % 32 == 0) atomicAdd(&sums[blockIdx.y], sum);
}
static Step planes(int blocks) {
    size_t each = 3 * M / 4;
    float4 *in = (float4 *)buffer<float>(28 * each * 4);
    float *sums = buffer<float>(28);
    return [=] { LAUNCH(brightness, dim3(blocks, 28), 1024, 0, in, sums, each); };
}
CASE(planes_ill, "planes") { return planes(1); }
CASE(planes_cured, "planes.cured") { return planes(48); }

// unequal-blocks: a block a document, of which a few are 13 times as long (ill); pieces of equal length (cured)
__global__ void score_documents(const int *begins, const float *words, float *scores) {
    float sum = 0;
    for (int w = begins[blockIdx.x] + threadIdx.x; w < begins[blockIdx.x + 1]; w += blockDim.x) {
        float x = words[w];
        for (int k = 0; k < 24; ++k) x = fmaf(x, 0.97f, 0.02f);
        sum += x;
    }
    for (int far = 16; far; far /= 2) sum += __shfl_down_sync(~0u, sum, far);
    if (threadIdx.x % 32 == 0) atomicAdd(&scores[blockIdx.x & 4095], sum);
}
static Step documents(bool ragged) {
    std::vector<int> lengths;
    for (int d = 0; d < 6000; ++d) lengths.push_back(d % 750 == 740 ? 104000 : 8000);
    std::vector<int> begins{0};
    for (int length : lengths) {
        int piece = ragged ? length : 8000;
        for (int end = piece; end <= length; end += piece) begins.push_back(begins.back() + piece);
    }
    int blocks = begins.size() - 1;
    int *at = copied(begins);
    float *words = buffer<float>(begins.back()), *scores = buffer<float>(4096);
    return [=] { LAUNCH(score_documents, blocks, 128, 0, at, words, scores); };
}
CASE(documents_ill, "documents") { return documents(true); }
CASE(documents_cured, "documents.cured") { return documents(false); }

// occupancy-shared-memory: walks in a dictionary of 24 MB; a block of 128 threads takes 160 kB (ill) or 4 kB (cured)
__global__ void spell(const int *next, int *ends, int hops, int mask) {
    extern __shared__ int letters[];
    int i = blockIdx.x * blockDim.x + threadIdx.x, at = hashed(i) & mask;
    for (int hop = 0; hop < hops; ++hop) {
        at = next[(at ^ hop) & mask];
        letters[threadIdx.x] = at;
    }
    ends[i] = at + letters[threadIdx.x ^ 1];
}
static Step dictionary(int shared) {
    int words = 4 * M, walks = 1 * M;
    int *next = buffer<int>(words, 0, words - 1), *ends = buffer<int>(walks);
    CHECK(cudaFuncSetAttribute(spell, cudaFuncAttributeMaxDynamicSharedMemorySize, 160 * 1024));
    return [=] { LAUNCH(spell, walks / 128, 128, shared, next, ends, 24, words - 1); };
}
CASE(dictionary_ill, "dictionary") { return dictionary(160 * 1024); }
CASE(dictionary_cured, "dictionary.cured") { return dictionary(4 * 1024); }

// l2-capacity: 8 filters over a signal of 384 MB, filter by filter (ill) or piece by piece (cured)
__global__ void filter_bank(const float4 *signal, float *energy, int pieces, bool by_piece) {
    int piece = by_piece ? blockIdx.x / 8 : blockIdx.x % pieces, filter = by_piece ? blockIdx.x % 8 : blockIdx.x / pieces;
    const float4 *own = signal + piece * (size_t)4096;
    float c = 0.1f * filter, sum = 0;
#pragma unroll 8
    for (int i = threadIdx.x; i < 4096; i += 256) {
        float4 v = own[i];
        sum += (v.x * c + v.y) * (v.z - c * v.w);
    }
    for (int far = 16; far; far /= 2) sum += __shfl_down_sync(~0u, sum, far);
    if (threadIdx.x % 32 == 0) atomicAdd(&energy[blockIdx.x & 8191], sum);
}
static Step filters(bool by_piece) {
    int pieces = 6144;
    float4 *signal = (float4 *)buffer<float>(pieces * (size_t)4096 * 4);
    float *energy = buffer<float>(8192);
    return [=] { LAUNCH(filter_bank, pieces * 8, 256, 0, signal, energy, pieces, by_piece); };
}
CASE(filters_ill, "filter-bank") { return filters(false); }
CASE(filters_cured, "filter-bank.cured") { return filters(true); }

// tensor-cores-unused: half-precision projections by FMA of tiles (ill) or by tensor cores (cured)
__global__ void project(const half *a, const half *b, float *c, int n) {
    __shared__ float ta[16][68], tb[16][68];
    int row = blockIdx.y * 64, column = blockIdx.x * 64, tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    float sums[4][4] = {};
    for (int k = 0; k < n; k += 16) {
        for (int e = threadIdx.x; e < 1024; e += 256) {
            ta[e % 16][e / 16] = __half2float(a[(row + e / 16) * (size_t)n + k + e % 16]);
            tb[e / 64][e % 64] = __half2float(b[(k + e / 64) * (size_t)n + column + e % 64]);
        }
        __syncthreads();
#pragma unroll
        for (int kk = 0; kk < 16; ++kk) {
            float4 u = *(float4 *)&ta[kk][ty * 4], v = *(float4 *)&tb[kk][tx * 4];
            float us[4] = {u.x, u.y, u.z, u.w}, vs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int i = 0; i < 16; ++i) sums[i / 4][i % 4] = fmaf(us[i / 4], vs[i % 4], sums[i / 4][i % 4]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 16; ++i) c[(row + ty * 4 + i / 4) * (size_t)n + column + tx * 4 + i % 4] = sums[i / 4][i % 4];
}
__global__ void project_tensor(const half *a, const half *b, float *c, int n) {
    using namespace nvcuda::wmma;
    __shared__ __align__(16) half ta[64][40], tb[32][72];
    int row = blockIdx.y * 64, column = blockIdx.x * 64, warp = threadIdx.x / 32, r = warp / 2 * 16, q = warp % 2 * 32;
    fragment<accumulator, 16, 16, 16, float> sums[2];
    fill_fragment(sums[0], 0.0f);
    fill_fragment(sums[1], 0.0f);
    for (int k = 0; k < n; k += 32) {
        int e = threadIdx.x * 8;
        *(uint4 *)&ta[e / 32][e % 32] = *(const uint4 *)&a[(row + e / 32) * (size_t)n + k + e % 32];
        *(uint4 *)&tb[e / 64][e % 64] = *(const uint4 *)&b[(k + e / 64) * (size_t)n + column + e % 64];
        __syncthreads();
        for (int kk = 0; kk < 32; kk += 16) {
            fragment<matrix_a, 16, 16, 16, half, row_major> u;
            load_matrix_sync(u, &ta[r][kk], 40);
            for (int side = 0; side < 2; ++side) {
                fragment<matrix_b, 16, 16, 16, half, row_major> v;
                load_matrix_sync(v, &tb[kk][q + side * 16], 72);
                mma_sync(sums[side], u, v, sums[side]);
            }
        }
        __syncthreads();
    }
    for (int side = 0; side < 2; ++side)
        store_matrix_sync(&c[(row + r) * (size_t)n + column + q + side * 16], sums[side], n, mem_row_major);
}
__global__ void halves(half *data, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        data[i] = __float2half(hashed((uint32_t)i) * 2.3283064e-10f - 0.5f);
}
static Step projections(bool tensor) {
    int n = 3072;
    half *a = (half *)buffer<uint16_t>((size_t)n * n), *b = (half *)buffer<uint16_t>((size_t)n * n);
    float *c = buffer<float>((size_t)n * n);
    halves<<<1024, 256>>>(a, (size_t)n * n);
    halves<<<1024, 256>>>(b, (size_t)n * n);
    CHECK(cudaGetLastError());
    dim3 grid(n / 64, n / 64);
    return [=] {
        if (tensor)
            LAUNCH(project_tensor, grid, 256, 0, a, b, c, n);
        else
            LAUNCH(project, grid, 256, 0, a, b, c, n);
    };
}
CASE(projections_ill, "projections") { return projections(false); }
CASE(projections_cured, "projections.cured") { return projections(true); }

// integer-division: a tensor's axes are turned round by 64-bit division (ill), or by shifts (cured)
__global__ void turn_axes(const float *in, float *out, long long n, long long d1, long long d2, long long d3) {
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x) {
        long long w = i % d3, z = i / d3 % d2, y = i / (d3 * d2) % d1, x = i / (d3 * d2 * d1);
        out[((z * (n / (d1 * d2 * d3)) + x) * d1 + y) * d3 + w] = in[i];
    }
}
__global__ void turn_axes_shifted(const float *in, float *out, int n, int b1, int b2, int b3) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int w = i & ((1 << b3) - 1), z = i >> b3 & ((1 << b2) - 1), y = i >> (b3 + b2) & ((1 << b1) - 1);
        int x = i >> (b3 + b2 + b1);
        out[(((((z * (n >> (b1 + b2 + b3))) + x) << b1) + y) << b3) + w] = in[i];
    }
}
static Step axes(bool divide) {
    int n = 64 * M;
    float *in = buffer<float>(n), *out = buffer<float>(n);
    return [=] {
        if (divide)
            LAUNCH(turn_axes, 4224, 256, 0, in, out, n, 16, 32, 64);
        else
            LAUNCH(turn_axes_shifted, 4224, 256, 0, in, out, n, 4, 5, 6);
    };
}
CASE(axes_ill, "axes") { return axes(true); }
CASE(axes_cured, "axes.cured") { return axes(false); }

// healthy: heat in a plate, five points, 16 bytes a thread; DRAM binds
__global__ void heat_plate(const float *__restrict__ in, float *__restrict__ out, int n) {
    int x = 4 * (blockIdx.x * 256 + threadIdx.x), y = blockIdx.y + 1;
    size_t at = y * (size_t)n + x;
    float4 here = *(const float4 *)&in[at], above = *(const float4 *)&in[at - n], below = *(const float4 *)&in[at + n];
    float left = x ? in[at - 1] : here.x, right = x + 4 < n ? in[at + 4] : here.w;
    *(float4 *)&out[at] = make_float4(
        0.6f * here.x + 0.1f * (left + here.y + above.x + below.x), 0.6f * here.y + 0.1f * (here.x + here.z + above.y + below.y),
        0.6f * here.z + 0.1f * (here.y + here.w + above.z + below.z), 0.6f * here.w + 0.1f * (here.z + right + above.w + below.w));
}
CASE(plate, "heat-plate") {
    int n = 16384;
    float *in = buffer<float>((size_t)n * n), *out = buffer<float>((size_t)n * n);
    return [=] {
        LAUNCH(heat_plate, dim3(n / 1024, n - 2), 256, 0, in, out, n);
        LAUNCH(heat_plate, dim3(n / 1024, n - 2), 256, 0, out, in, n);
    };
}

// healthy: the norm of a vector, 16 bytes a thread four times, a sum a block; DRAM binds
__global__ void norm(const float4 *x, float *sum, size_t n) {
    float own = 0;
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += 4 * stride) {
        float4 v[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) v[k] = i + k * stride < n ? x[i + k * stride] : float4{};
#pragma unroll
        for (int k = 0; k < 4; ++k) own += v[k].x * v[k].x + v[k].y * v[k].y + v[k].z * v[k].z + v[k].w * v[k].w;
    }
    __shared__ float sums[8];
    for (int far = 16; far; far /= 2) own += __shfl_down_sync(~0u, own, far);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = own;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < 8; ++w) own += sums[w];
        atomicAdd(sum, own);
    }
}
CASE(norm_healthy, "vector-norm") {
    size_t n = 96 * (size_t)M;
    float4 *x = (float4 *)buffer<float>(4 * n);
    float *sum = buffer<float>(1);
    return [=] { LAUNCH(norm, 1056, 256, 0, x, sum, n); };
}

// healthy: stars attract each other, four a thread, by tiles of shared memory; FP32 binds
__global__ void attract(const float4 *__restrict__ stars, float4 *pulls, int n) {
    __shared__ float4 tile[256];
    int i = blockIdx.x * 1024 + threadIdx.x;
    float4 own[4];
    float3 pull[4] = {};
#pragma unroll
    for (int k = 0; k < 4; ++k) own[k] = stars[i + k * 256];
    for (int begin = 0; begin < n; begin += 256) {
        tile[threadIdx.x] = stars[begin + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int j = 0; j < 256; ++j) {
            float4 other = tile[j];
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                float dx = other.x - own[k].x, dy = other.y - own[k].y, dz = other.z - own[k].z;
                float r2 = fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, 0.01f)));
                // a softened force of a polynomial, without a root
                float force = other.w * fmaf(r2, fmaf(r2, fmaf(r2, -0.02f, 0.11f), -0.42f), 1.0f);
                pull[k].x = fmaf(force, dx, pull[k].x);
                pull[k].y = fmaf(force, dy, pull[k].y);
                pull[k].z = fmaf(force, dz, pull[k].z);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) pulls[i + k * 256] = make_float4(pull[k].x, pull[k].y, pull[k].z, 0);
}
CASE(stars_healthy, "stars") {
    int n = 132 * 1024 * 4;
    float4 *stars = (float4 *)buffer<float>(4 * (size_t)n), *pulls = (float4 *)buffer<float>(4 * (size_t)n);
    return [=] { LAUNCH(attract, n / 1024, 256, 0, stars, pulls, 132 * 256); };
}

// healthy: sums of FP64 on purpose, four polynomials of degree 96 of each number
__global__ void orbits(const double *in, double *out, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        double x = in[i], a = 1, b = 0.5, c = 0.25, d = 0.125;
#pragma unroll 24
        for (int k = 0; k < 96; ++k) {
            a = fma(a, x, 0.1), b = fma(b, x, 0.2), c = fma(c, x, 0.3), d = fma(d, x, 0.4);
        }
        out[i] = a + b + c + d;
    }
}
CASE(orbits_healthy, "orbits") {
    size_t n = 16 * M;
    double *in = buffer<double>(n), *out = buffer<double>(n);
    return [=] { LAUNCH(orbits, 1056, 256, 0, in, out, n); };
}

int main(int argc, char **argv) { return run_cases(argc, argv); }
