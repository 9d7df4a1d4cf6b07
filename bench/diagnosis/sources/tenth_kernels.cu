// A tenth set of kernels: one planted illness a case (or none); NAME.cured gives the same without it.
#include "harness.h"
#include <algorithm>
#include <cmath>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cuda_fp16.h>
#include <mma.h>
#include <numeric>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/sort.h>
#include <utility>

namespace cg = cooperative_groups;

#define PAIR(id, name)                                                                                                 \
    template <bool ill> Step id();                                                                                     \
    CASE(id##_as_is, name) { return id<true>(); }                                                                      \
    CASE(id##_better, name ".cured") { return id<false>(); }                                                           \
    template <bool ill> Step id()

// ---------------------------------------------------------------------------------------------------------------------
// instruction-cache. Integrals over 48 classes of shells, a generated function each (~800 FFMA with immediates = 13 KB; all: 600 KB). As is each warp goes through the classes beginning at its
// own, so the warps of an SM are in 32 functions at once (L1.5 has 128 KB); the twin has the pairs in the order of their classes: all warps of neighbouring blocks are in one function.
// 8448 warps * 16 rounds * 800 FFMA * 2 launches / 528 schedulers = 0.41 M cycles = 0.24 ms of issue; ill 2x or more.
constexpr unsigned mixed_bits(unsigned x) {
    x = (x ^ 61u) ^ (x >> 16);
    x *= 9u;
    x ^= x >> 4;
    x *= 0x27d4eb2du;
    return x ^ (x >> 15);
}
template <int kind, int k> constexpr float coefficient = 0.0002f * (float)(mixed_bits(kind * 4096 + k) % 4093u) - 0.4f;
template <int kind, int... k> __device__ __forceinline__ float4 integral_terms(float4 u, float t, std::integer_sequence<int, k...>) {
    ((u.x = fmaf(u.x, t, coefficient<kind, 4 * k>), u.y = fmaf(u.y, t, coefficient<kind, 4 * k + 1>), u.z = fmaf(u.z, t, coefficient<kind, 4 * k + 2>),
      u.w = fmaf(u.w, t, coefficient<kind, 4 * k + 3>)),
     ...);
    return u;
}
template <int kind> __device__ __noinline__ float4 integral(float4 u, float t) { return integral_terms<kind>(u, t, std::make_integer_sequence<int, 200>()); }
using Integral = float4 (*)(float4, float);
#define EIGHT(b)                                                                                                       \
    case b: u = integral<b>(u, t); break;                                                                              \
    case b + 1: u = integral<b + 1>(u, t); break;                                                                      \
    case b + 2: u = integral<b + 2>(u, t); break;                                                                      \
    case b + 3: u = integral<b + 3>(u, t); break;                                                                      \
    case b + 4: u = integral<b + 4>(u, t); break;                                                                      \
    case b + 5: u = integral<b + 5>(u, t); break;                                                                      \
    case b + 6: u = integral<b + 6>(u, t); break;                                                                      \
    case b + 7: u = integral<b + 7>(u, t); break;
__device__ __forceinline__ float4 integral_of(int kind, float4 u, float t) {
    switch (kind) {
        EIGHT(0) EIGHT(8) EIGHT(16) EIGHT(24) EIGHT(32) EIGHT(40)
    }
    return u;
}
__global__ void __launch_bounds__(256) shell_pairs(const int *__restrict__ kinds, const float *__restrict__ exponents, float *__restrict__ out, int rounds) {
    int warp = (blockIdx.x * 256 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    for (int r = 0; r < rounds; ++r) {
        int batch = warp * rounds + r;
        float t = 0.9f * exponents[batch * 32 + lane];
        float4 u = integral_of(kinds[batch], make_float4(t, 1, t * t, 0.5f), t);
        out[batch * 32 + lane] = u.x + u.y + u.z + u.w;
    }
}
PAIR(shells, "shell-pairs") {
    const int blocks = 132 * 8, warps = blocks * 8, rounds = 16;
    std::vector<int> kinds(warps * rounds), placed(kinds.size());
    for (int i = 0; i < warps * rounds; ++i) kinds[i] = mixed_bits(i) % 48;
    if (ill)
        placed = kinds;
    else { // in order of their kinds, so that the blocks that share an SM (b, b + 132, ...) follow each other
        std::sort(kinds.begin(), kinds.end());
        const int each = 8 * rounds;
        for (int b = 0; b < blocks; ++b) std::copy_n(kinds.begin() + (b % 132 * 8 + b / 132) * each, each, placed.begin() + b * each);
    }
    int *order = copied(placed);
    float *exponents = buffer<float>(warps * rounds * 32), *out = buffer<float>(warps * rounds * 32);
    return [=] {
        for (int k = 0; k < 2; ++k) LAUNCH(shell_pairs, blocks, 256, 0, order, exponents, out, rounds);
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// l2-capacity. Depth derivative of a migrated volume, 2048 x 1536 x 64: nine planes of 12.6 MB are read for one. A thread a point, planes one after the other: a plane comes nine times from DRAM
// (reuse is ~113 MB + writes apart): up to 8 GB = 1.9 ms; the twin marches down a column with the planes in registers: 1.6 GB = 0.4 ms. Beside: the image condition (a stream of 0.4 GB, 0.1 ms).
__constant__ float taper[9] = {0.0036f, -0.038f, 0.2f, -0.8f, 0.01f, 0.8f, -0.2f, 0.038f, -0.0036f};
__global__ void depth_slope(const float *__restrict__ p, float *__restrict__ q, int plane, int depth) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, z = blockIdx.y;
    if (i >= plane) return;
    float s = 0;
#pragma unroll
    for (int k = -4; k <= 4; ++k) {
        int at = min(max(z + k, 0), depth - 1);
        s = fmaf(taper[k + 4], p[(size_t)at * plane + i], s);
    }
    q[(size_t)z * plane + i] = s;
}
__global__ void depth_slope_marching(const float *__restrict__ p, float *__restrict__ q, int plane, int depth) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= plane) return;
    float w[9];
#pragma unroll
    for (int k = 0; k < 9; ++k) w[k] = p[(size_t)min(max(k - 4, 0), depth - 1) * plane + i];
#pragma unroll 4
    for (int z = 0; z < depth; ++z) {
        float s = 0;
#pragma unroll
        for (int k = 0; k < 9; ++k) s = fmaf(taper[k], w[k], s);
        q[(size_t)z * plane + i] = s;
#pragma unroll
        for (int k = 0; k < 8; ++k) w[k] = w[k + 1];
        w[8] = p[(size_t)min(z + 5, depth - 1) * plane + i];
    }
}
__global__ void image_condition(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ image, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) image[i] = 0.99f * image[i] + a[i] * b[i];
}
PAIR(migration, "below-the-salt") {
    const int plane = 2048 * 1536, depth = 64, n = 24 << 20;
    float *p = buffer<float>((size_t)plane * depth, -1, 1), *q = buffer<float>((size_t)plane * depth), *image = buffer<float>(n);
    return [=] {
        if (ill)
            LAUNCH(depth_slope, dim3(plane / 256, depth), 256, 0, p, q, plane, depth);
        else
            LAUNCH(depth_slope_marching, plane / 256, 256, 0, p, q, plane, depth);
        LAUNCH(image_condition, 132 * 8, 256, 0, p, q, image, n);
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// unfused-multiply-add. Spherical harmonics' sums by recurrence, written with helpers "equal bit by bit to the reference on the host": FMUL and FADD where the twin has FFMA: 26 against 13
// instructions a degree (four orders a thread). 2 M points * 400 degrees: 65536 warps * 400 * 15 / (528 * 1.7 GHz) = 0.44 ms for the twin, ~0.85 as is.
struct AsOnTheHost {
    static __device__ float of(float a, float b, float c) { return __fadd_rn(__fmul_rn(a, b), c); }
};
struct AsTheDeviceLikes {
    static __device__ float of(float a, float b, float c) { return fmaf(a, b, c); }
};
template <class MultiplyAdd> __global__ void __launch_bounds__(256) harmonics(const float *__restrict__ latitudes, float *__restrict__ field, int degrees) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float x = latitudes[i], before[4], now[4], sum[4];
#pragma unroll
    for (int m = 0; m < 4; ++m) before[m] = 1, now[m] = x * (1 + 0.1f * m), sum[m] = 0;
    float c = 0.1f, x2 = 1.9f * x;
#pragma unroll 4
    for (int l = 0; l < degrees; ++l) {
        c = MultiplyAdd::of(c, 0.995f, 1e-4f);
#pragma unroll
        for (int m = 0; m < 4; ++m) {
            float next = MultiplyAdd::of(x2, now[m], -before[m]);
            before[m] = MultiplyAdd::of(now[m], 0.98f, c);
            now[m] = next;
            sum[m] = MultiplyAdd::of(c, next, sum[m]);
        }
    }
    field[i] = sum[0] + sum[1] + sum[2] + sum[3];
}
PAIR(spectral_climate, "geopotential") {
    const int points = 1 << 21;
    float *latitudes = buffer<float>(points, -0.9, 0.9), *field = buffer<float>(points);
    return [=] { LAUNCH((harmonics<std::conditional_t<ill, AsOnTheHost, AsTheDeviceLikes>>), points / 256, 256, 0, latitudes, field, 400); };
}

// ---------------------------------------------------------------------------------------------------------------------
// occupancy-registers. A warp a track, 32 energy groups a lane each; a track goes from region to region (a line of 128 B each, the next region is in it: L2's latency, ~300 cycles a hop). Each 32nd
// hop the polynomial of the lane's group (120 coefficients) is evaluated. As is the coefficients wait in registers (~150: 12 warps an SM); the twin reads them (L1/L2, coalesced) when they
// are wanted: ~30 registers, 64 warps. 132 * 128 tracks * 512 hops: ill 11 turns * 512 * 0.2 us = 1.1 ms; twin 2 turns, near L2's bandwidth: ~0.35 ms.
template <bool kept, int order> __global__ void __launch_bounds__(128) tracks(const float *__restrict__ regions, const float *__restrict__ coefficients, float *__restrict__ doses, int hops, int mask) {
    int warp = (blockIdx.x * 128 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    const volatile float *mine = coefficients + (warp & 31) * 32 * order + lane;
    float c[order];
    if (kept)
#pragma unroll
        for (int k = 0; k < order; ++k) c[k] = mine[k * 32];
    int region = (warp * 7919) & mask;
    float flux = 0, depth = 0;
    for (int hop = 0; hop < hops; hop += 32) {
#pragma unroll 1
        for (int k = 0; k < 32; ++k) {
            float sigma = regions[region * 32 + lane];
            depth = fmaf(0.98f, depth, sigma);
            region = (int)(__shfl_sync(~0u, sigma, region & 31) * 16777216.f) + warp * 7919 + k & mask;
        }
        float s = 0, x = 0.01f * depth;
        if (kept) {
#pragma unroll
            for (int k = 0; k < order; ++k) s = fmaf(s, x, c[k]);
        } else {
#pragma unroll 8
            for (int k = 0; k < order; ++k) s = fmaf(s, x, mine[k * 32]);
        }
        flux += s;
    }
    doses[warp * 32 + lane] = flux;
}
PAIR(transport, "shielding") {
    const int regions = 1 << 17, warps = 132 * 64 * 2;
    float *table = buffer<float>(regions * 32), *coefficients = buffer<float>(32 * 32 * 120), *doses = buffer<float>(warps * 32);
    return [=] { LAUNCH((tracks<ill, 120>), warps / 4, 128, 0, table, coefficients, doses, 512, regions - 1); };
}

// ---------------------------------------------------------------------------------------------------------------------
// occupancy-shared-memory. Assembly of patches of a mesh: a block of 128 takes a patch, brings its 2048 nodal values (8 KB) to shared memory, waits, works on them, writes. As is the block asks for
// room for the largest patch that there could be (104 KB: 2 blocks, 8 warps an SM, 16 KB under way at most, and not always), the twin for what the mesh has (8 KB: 16 blocks).
// 512 MB in, 256 MB out: 0.18 ms at the roof; as is ~3x.
__global__ void __launch_bounds__(128) assembled(const float *__restrict__ nodal, float *__restrict__ residual, int nodes, int patches) {
    extern __shared__ float patch[];
    for (int at = blockIdx.x; at < patches; at += gridDim.x) {
        const float *from = nodal + (size_t)at * nodes;
        for (int k = threadIdx.x; k < nodes; k += 128) patch[k] = from[k];
        __syncthreads();
        for (int e = threadIdx.x; e < nodes / 2; e += 128) {
            float a = patch[e], b = patch[(e + 1) & (nodes - 1)], c = patch[(e + nodes / 2) & (nodes - 1)], d = patch[(e + nodes / 2 + 1) & (nodes - 1)];
            float jacobian = a * d - b * c;
            residual[(size_t)at * (nodes / 2) + e] = jacobian * (a + b + c + d) + 0.25f * (a - b) * (c - d);
        }
        __syncthreads();
    }
}
PAIR(assembly, "mesh-patches") {
    const int nodes = 2048, patches = 65536;
    float *nodal = buffer<float>((size_t)nodes * patches), *residual = buffer<float>((size_t)nodes / 2 * patches);
    const int room = ill ? 104 * 1024 : nodes * 4;
    CHECK(cudaFuncSetAttribute(assembled, cudaFuncAttributeMaxDynamicSharedMemorySize, 104 * 1024));
    return [=] { LAUNCH(assembled, 132 * 32, 128, room, nodal, residual, nodes, patches); };
}

// ---------------------------------------------------------------------------------------------------------------------
// occupancy-block-size. Searches in a graph of neighbours, a warp each (the lanes hold the query's 32 codes); 1024 hops with ~300 cycles of L2 each. Blocks of one warp: 32 an SM; the twin has blocks
// of 256: 64 warps. 132 * 64 * 4 searches.
template <int threads> __global__ void __launch_bounds__(threads) greedy_search(const uint2 *__restrict__ nodes, const unsigned *__restrict__ codes, unsigned *__restrict__ found, int hops, unsigned mask) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    unsigned query = blockIdx.x * (threads / 32) + warp.meta_group_rank(), code = codes[query * 32 + warp.thread_rank()];
    unsigned at = query * 40503u & mask, best = ~0u;
    for (int hop = 0; hop < hops; ++hop) {
        uint2 node = nodes[at];
        unsigned distance = warp.shfl(node.y ^ code, hop);
        best = min(best, distance);
        at = (distance & 1 ? node.x : node.y) & mask;
    }
    if (warp.thread_rank() == 0) found[query] = best;
}
PAIR(graph_search, "look-alikes") {
    const int nodes = 1 << 21, queries = 132 * 64 * 4, threads = ill ? 32 : 256;
    auto graph = buffer<unsigned>(2 * nodes, 0, 4294967295.0), codes = buffer<unsigned>(queries * 32, 0, 4294967295.0), found = buffer<unsigned>(queries);
    return [=] { LAUNCH(greedy_search<threads>, queries * 32 / threads, threads, 0, (uint2 *)graph, codes, found, 512, nodes - 1u); };
}

// ---------------------------------------------------------------------------------------------------------------------
// too-few-blocks. Leaves of a Merkle tree, 48 blocks of 1024, each thread hashes many leaves; the twin has 132 * 16 blocks of 128 with as many leaves altogether. 48 of 132 SMs.
__device__ inline unsigned rotated_left(unsigned x, int by) { return __funnelshift_l(x, x, by); }
__device__ unsigned leaf_digest(unsigned word, int rounds) {
    unsigned a = word, b = 0x9e3779b9u ^ word, c = 0x85ebca6bu, d = 0xc2b2ae35u + word;
#pragma unroll 4
    for (int r = 0; r < rounds; ++r) {
        a += b, d = rotated_left(d ^ a, 16);
        c += d, b = rotated_left(b ^ c, 12);
        a += b, d = rotated_left(d ^ a, 8);
        c += d, b = rotated_left(b ^ c, 7);
    }
    return a ^ b ^ c ^ d;
}
__global__ void merkle_leaves(const unsigned *leaves, unsigned *digests, int n, int rounds) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) digests[i] = leaf_digest(leaves[i], rounds);
}
__global__ void merkle_level(const unsigned *below, unsigned *above, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) above[i] = leaf_digest(below[2 * i] ^ rotated_left(below[2 * i + 1], 13), 8);
}
PAIR(merkle, "notary") {
    const int n = 1 << 21;
    unsigned *leaves = buffer<unsigned>(n, 0, 4294967295.0), *digests = buffer<unsigned>(n), *above = buffer<unsigned>(n / 2);
    return [=] {
        LAUNCH(merkle_leaves, ill ? 48 : 132 * 16, ill ? 1024 : 128, 0, leaves, digests, n, 320);
        LAUNCH(merkle_level, 132 * 8, 256, 0, digests, above, n / 2);
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// unequal-blocks. Common neighbours: a warp a vertex; degrees fall with the number of the vertex (hubs first). A block takes 64 vertices that follow each other: the first has 7x the mean; the twin
// deals the vertices out (block b has b, b + blocks, ...).
__global__ void __launch_bounds__(256) common_neighbours(const int *__restrict__ begins, const int *__restrict__ neighbours, const int *__restrict__ sorted, int *__restrict__ counts, int each, bool dealt) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int k = warp; k < each; k += 8) {
        int v = dealt ? k * gridDim.x + blockIdx.x : blockIdx.x * each + k, common = 0;
        for (int e = begins[v] + lane; e < begins[v + 1]; e += 32) {
            int u = neighbours[e], low = 0;
#pragma unroll
            for (int span = 2048; span; span /= 2)
                if (__ldg(sorted + low + span) <= u) low += span;
            common += __ldg(sorted + low) == u;
        }
        common = __reduce_add_sync(~0u, common);
        if (lane == 0) counts[v] = common;
    }
}
PAIR(triangles, "acquaintances") {
    const int blocks = 132 * 6, each = 64, vertices = blocks * each;
    std::vector<int> begins(vertices + 1, 0), sorted(4096);
    for (int v = 0; v < vertices; ++v) begins[v + 1] = begins[v] + 64 + (int)(6000 * pow(1 + v / 2500.0, -1.25));
    for (int k = 0; k < 4096; ++k) sorted[k] = k * 997;
    int *neighbours = buffer<int>(begins.back(), 0, 4096 * 997.0), *b = copied(begins), *s = copied(sorted), *counts = buffer<int>(vertices);
    return [=] { LAUNCH(common_neighbours, blocks, 256, 0, b, neighbours, s, counts, each, !ill); };
}

// ---------------------------------------------------------------------------------------------------------------------
// uncoalesced-access. Factors of 2 M matrices of 8 x 8, a thread each, in place. As is a matrix is contiguous: neighbouring threads 256 B apart: 32 lines a load (~32 cycles of L1 each: 64 loads
// and 64 stores = 4096 cycles for 16 KB: ~1 TB/s); the twin has the matrices interleaved by 32 (element k of 32 matrices together): 1 GB = 0.25 ms.
template <int n, bool apart> __global__ void __launch_bounds__(128) factored(float *__restrict__ matrices, int count) {
    int t = blockIdx.x * 128 + threadIdx.x;
    if (t >= count) return;
    float *mine = matrices + (apart ? (size_t)t * n * n : (size_t)(t / 32) * 32 * n * n + t % 32);
    constexpr int stride = apart ? 1 : 32;
    float a[n][n];
#pragma unroll
    for (int i = 0; i < n; ++i)
#pragma unroll
        for (int j = 0; j < n; ++j) a[i][j] = mine[(i * n + j) * stride] + (i == j ? 4.f : 0.f);
#pragma unroll
    for (int k = 0; k < n; ++k) {
        float inverse = __frcp_rn(a[k][k]);
#pragma unroll
        for (int i = k + 1; i < n; ++i) {
            a[i][k] *= inverse;
#pragma unroll
            for (int j = k + 1; j < n; ++j) a[i][j] = fmaf(-a[i][k], a[k][j], a[i][j]);
        }
    }
#pragma unroll
    for (int i = 0; i < n; ++i)
#pragma unroll
        for (int j = 0; j < n; ++j) mine[(i * n + j) * stride] = a[i][j];
}
PAIR(small_lu, "reservoir-wells") {
    const int count = 1 << 21;
    float *matrices = buffer<float>((size_t)count * 64);
    return [=] { LAUNCH((factored<8, ill>), count / 128, 128, 0, matrices, count); };
}

// ---------------------------------------------------------------------------------------------------------------------
// array-of-structures. Weights of the hypotheses of a robot's place, 80 B each: the sum of the weights, the sum of their squares after the likelihood. 12 M * 64 B (of 80) = 0.77 GB or more a pass = 0.18 ms,
// the twin 48 MB of weights and 48 MB of errors alone.
struct Hypothesis {
    float pose[6], velocity[6], weight, error, landmark[4];
    int map, parent;
};
static_assert(sizeof(Hypothesis) == 80, "");
__global__ void __launch_bounds__(256) likelihood_sums(const float *weights, const float *errors, int stride, int n, float sharpness, float *sums) {
    float sum = 0, squares = 0;
#pragma unroll 4
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        float w = weights[(size_t)i * stride] * __expf(-sharpness * errors[(size_t)i * stride]);
        sum += w, squares += w * w;
    }
    using Reduce = cub::BlockReduce<float, 256>;
    __shared__ typename Reduce::TempStorage scratch;
    sum = Reduce(scratch).Sum(sum);
    __syncthreads();
    squares = Reduce(scratch).Sum(squares);
    if (threadIdx.x == 0) atomicAdd(sums, sum), atomicAdd(sums + 1, squares);
}
PAIR(places, "robot-lost") {
    const int n = 12 << 20;
    float *all = buffer<float>((size_t)n * (ill ? 20 : 2)), *sums = buffer<float>(8);
    Hypothesis *first = (Hypothesis *)all;
    const float *weights = ill ? &first->weight : all, *errors = ill ? &first->error : all + n;
    return [=] {
        for (int k = 0; k < 4; ++k) LAUNCH(likelihood_sums, 132 * 8, 256, 0, weights, errors, ill ? 20 : 1, n, 0.5f + k, sums + 2 * k);
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// narrow-access. Motion of 16 x 16 blocks between two pictures (4096 x 2176): a thread a candidate (16 x 4 displacements of four pixels), sums of absolute differences by bytes: 512 loads of one byte;
// the twin takes four pixels a load and __vsadu4: 128 loads. 34816 blocks * 64 candidates.
template <class Word> __device__ inline unsigned apart(Word a, Word b);
template <> __device__ inline unsigned apart(uint8_t a, uint8_t b) { return abs((int)a - (int)b); }
template <> __device__ inline unsigned apart(unsigned a, unsigned b) { return __vsadu4(a, b); }
template <class Word> __global__ void __launch_bounds__(64) motion(const uint8_t *__restrict__ before, const uint8_t *__restrict__ now, unsigned *__restrict__ best, int width) {
    constexpr int pixels = sizeof(Word);
    int x = 64 + blockIdx.x * 16 + (threadIdx.x % 16) * 4 - 32, y = 16 + blockIdx.y * 16 + threadIdx.x / 16 - 2;
    const uint8_t *a = now + (16 + blockIdx.y * 16) * width + 64 + blockIdx.x * 16, *b = before + y * width + x;
    unsigned sum = 0;
#pragma unroll 4
    for (int row = 0; row < 16; ++row, a += width, b += width)
#pragma unroll
        for (int k = 0; k < 16; k += pixels) sum += apart(*(const Word *)(a + k), *(const Word *)(b + k));
    unsigned key = __reduce_min_sync(~0u, sum << 8 | threadIdx.x);
    if (threadIdx.x % 32 == 0) atomicMin(best + blockIdx.y * gridDim.x + blockIdx.x, key);
}
PAIR(video_motion, "broadcast") {
    const int width = 4096, height = 2176;
    uint8_t *before = buffer<uint8_t>(width * height, 0, 256), *now = buffer<uint8_t>(width * height, 0, 256);
    unsigned *best = buffer<unsigned>(256 * 136, 4e9, 4.1e9);
    return [=] {
        for (int k = 0; k < 2; ++k) LAUNCH((motion<std::conditional_t<ill, uint8_t, unsigned>>), dim3(248, 132), 64, 0, k ? before : now, k ? now : before, best, width);
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// bank-conflicts. Lines of a multigrid level are solved in shared memory, a thread a line of 64 unknowns; rows are 64 floats apart: 32 threads in one bank. The twin has a pitch of 65.
template <int pitch> __global__ void __launch_bounds__(64) line_smoother(float *__restrict__ levels, int sweeps) {
    __shared__ float line[64 * pitch];
    float *mine = levels + (size_t)blockIdx.x * 4096;
    for (int k = threadIdx.x; k < 4096; k += 64) line[k / 64 * pitch + k % 64] = mine[k];
    __syncthreads();
    float *u = line + threadIdx.x * pitch;
    for (int sweep = 0; sweep < sweeps; ++sweep) {
        float left = 0;
#pragma unroll 8
        for (int k = 0; k < 64; ++k) u[k] = left = fmaf(0.3f, left, 0.6f * u[k]);
        float right = 0;
#pragma unroll 8
        for (int k = 63; k >= 0; --k) u[k] = right = fmaf(0.2f, right, 0.9f * u[k]);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < 4096; k += 64) mine[k] = line[k / 64 * pitch + k % 64];
}
PAIR(multigrid, "coarse-levels") {
    const int tiles = 8192;
    float *levels = buffer<float>((size_t)tiles * 4096, -1, 1);
    return [=] { LAUNCH((line_smoother<ill ? 64 : 65>), tiles, 64, 0, levels, 3); };
}

// ---------------------------------------------------------------------------------------------------------------------
// register-spills. Likelihoods of amino acids along a tree: a thread a site, the 20 + 20 partial likelihoods of two children in registers, the product with the transition matrices (shared).
// __launch_bounds__(512, 4) leaves 32 registers: the 40 values go to local memory. The twin: (128, 4).
template <int threads> __global__ void __launch_bounds__(threads, 4) pruned(const float *__restrict__ left, const float *__restrict__ right, const float *__restrict__ transitions, float *__restrict__ up, int sites, int branches) {
    __shared__ float all[6][2][400]; // a branch's two matrices
    for (int k = threadIdx.x; k < branches * 800; k += threads) all[0][0][k] = transitions[k];
    __syncthreads();
    int site = blockIdx.x * threads + threadIdx.x;
    float l[20], r[20];
#pragma unroll
    for (int s = 0; s < 20; ++s) l[s] = left[(size_t)s * sites + site], r[s] = right[(size_t)s * sites + site];
    for (int b = 0; b < branches; ++b) {
        const float(*p)[400] = all[b];
        float next[20];
#pragma unroll
        for (int s = 0; s < 20; ++s) {
            float x = 0, y = 0;
#pragma unroll
            for (int k = 0; k < 20; ++k) x = fmaf(p[0][s * 20 + k], l[k], x), y = fmaf(p[1][s * 20 + k], r[k], y);
            next[s] = x * y;
        }
#pragma unroll
        for (int s = 0; s < 20; ++s) l[s] = 4.f * next[s];
    }
#pragma unroll
    for (int s = 0; s < 20; ++s) up[(size_t)s * sites + site] = l[s];
}
PAIR(phylogeny, "kin-of-whelks") {
    const int sites = 1 << 20;
    float *left = buffer<float>(20 * (size_t)sites, 0, 0.3), *right = buffer<float>(20 * (size_t)sites, 0, 0.3), *up = buffer<float>(20 * (size_t)sites), *p = buffer<float>(6 * 800, 0, 0.3);
    return [=] { LAUNCH((pruned<ill ? 512 : 128>), sites / (ill ? 512 : 128), ill ? 512 : 128, 0, left, right, p, up, sites, 6); };
}

// ---------------------------------------------------------------------------------------------------------------------
// local-array-indexing. A forest of 96 trees of depth 7 on 32 features a sample; the features of a thread are an array indexed by the node's feature: local memory, each lane in another line. The
// twin has them in shared memory, [feature][thread]: no conflicts. 1 M samples.
struct Split {
    float threshold;
    int feature;
};
template <bool local> __global__ void __launch_bounds__(128) trees_vote(const float *__restrict__ samples, const Split *__restrict__ splits, float *__restrict__ votes, int n, int trees) {
    __shared__ float shared[local ? 1 : 32 * 128];
    float own[local ? 32 : 1];
    int i = blockIdx.x * 128 + threadIdx.x;
#pragma unroll
    for (int f = 0; f < 32; ++f) {
        float x = samples[(size_t)f * n + i];
        if (local)
            own[local ? f : 0] = x;
        else
            shared[local ? 0 : f * 128 + threadIdx.x] = x;
    }
    float vote = 0;
    for (int t = 0; t < trees; ++t) {
        const Split *tree = splits + t * 128;
        int node = 1;
#pragma unroll 1
        for (int level = 0; level < 7; ++level) {
            Split s = tree[node];
            float x = local ? own[local ? s.feature : 0] : shared[local ? 0 : s.feature * 128 + threadIdx.x];
            node = 2 * node + (x > s.threshold);
        }
        vote += 0.01f * (node & 63);
    }
    votes[i] = vote;
}
PAIR(forests, "loan-officers") {
    const int n = 1 << 19, trees = 48;
    std::vector<Split> splits(trees * 128);
    for (size_t k = 0; k < splits.size(); ++k) splits[k] = {0.2f + 0.6f * (mixed_bits(k) % 1000) / 1000, (int)(mixed_bits(k + 77777) % 32)};
    Split *s = copied(splits);
    float *samples = buffer<float>((size_t)32 * n), *votes = buffer<float>(n);
    return [=] { LAUNCH(trees_vote<ill>, n / 128, 128, 0, samples, s, votes, n, trees); };
}

// ---------------------------------------------------------------------------------------------------------------------
// divergence. Smoothed particles of four substances, mixed: each has its equation of state and viscosity (loops of ~300 instructions of different form); the twin has the particles in order of
// their substance. 4 M particles.
__device__ float water(float d, int n) {
    float p = d;
    for (int k = 0; k < n; ++k) p = fmaf(p * p, 0.3f, fmaf(p, d, 0.01f)), p = fminf(p, 1.f);
    return p;
}
__device__ float clay(float d, int n) {
    float p = d, q = 1 - d;
    for (int k = 0; k < n; ++k) p = fmaf(q, 0.4f, p * 0.5f), q = fmaf(p, d, 0.1f);
    return p - q;
}
__device__ float gravel(float d, int n) {
    float s = 0, w = 1;
    for (int k = 0; k < n; ++k) s = fmaf(w, d, s), w = fmaf(w, -0.5f, s * 0.01f), s = fabsf(s - 0.1f);
    return s;
}
__device__ float oil(float d, int n) {
    float a = d;
    for (int k = 0; k < n; ++k) {
        float b = fmaf(a, -0.7f, 0.9f);
        a = a > 0.5f ? b * a : fmaf(b, d, 0.2f);
    }
    return a;
}
__global__ void states_of_matter(const int *__restrict__ substances, const float *__restrict__ densities, float *__restrict__ pressures, int n, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float d = densities[i], p;
    switch (substances[i]) {
        case 0: p = water(d, rounds); break;
        case 1: p = clay(d, rounds); break;
        case 2: p = gravel(d, rounds); break;
        default: p = oil(d, rounds);
    }
    pressures[i] = p;
}
PAIR(smoothed, "landslip") {
    const int n = 4 << 20;
    int *substances = buffer<int>(n, 0, 4);
    if (!ill) thrust::sort(thrust::device, thrust::device_ptr<int>(substances), thrust::device_ptr<int>(substances + n));
    float *densities = buffer<float>(n), *pressures = buffer<float>(n);
    return [=] { LAUNCH(states_of_matter, n / 256, 256, 0, substances, densities, pressures, n, 200); };
}

// ---------------------------------------------------------------------------------------------------------------------
// fp64-by-accident. Radial basis functions around 256 centres: `exp(-0.5 * r / (h * h))` of floats with constants without f: an exponential and a division of doubles. Twin: with f.
__global__ void __launch_bounds__(256) bumps(const float2 *__restrict__ points, const float4 *__restrict__ centres, float *__restrict__ heights, int count, int wide) {
    __shared__ float4 c[256];
    c[threadIdx.x] = centres[threadIdx.x];
    __syncthreads();
    float2 p = points[blockIdx.x * 256 + threadIdx.x];
    float sum = 0;
#pragma unroll 2
    for (int k = 0; k < count; ++k) {
        float dx = p.x - c[k].x, dy = p.y - c[k].y, r = dx * dx + dy * dy;
        if (wide)
            sum += c[k].w * exp(-0.5 * r / (0.1 + c[k].z * c[k].z));
        else
            sum += c[k].w * __expf(__fdividef(-0.5f * r, 0.1f + c[k].z * c[k].z));
    }
    heights[blockIdx.x * 256 + threadIdx.x] = sum;
}
PAIR(radial, "sand-ripples") {
    const int n = 1 << 19;
    float2 *points = (float2 *)buffer<float>(2 * n);
    float4 *centres = (float4 *)buffer<float>(1024);
    float *heights = buffer<float>(n);
    return [=] { LAUNCH(bumps, n / 256, 256, 0, points, centres, heights, 256, ill); };
}

// ---------------------------------------------------------------------------------------------------------------------
// special-functions. Field maps of MRI: each pixel's signal is a sum of 256 harmonics with __sincosf at each (2 MUFU of 8 cycles a scheduler: 16 cycles a term); the twin turns a phasor (4 FMA, refreshed
// each 64 terms): ~7. 1 M pixels.
template <bool afresh> __global__ void __launch_bounds__(256) signal_of(const float *__restrict__ offsets, const float2 *__restrict__ gains, float2 *__restrict__ signals, int terms) {
    __shared__ float2 g[256];
    g[threadIdx.x] = gains[threadIdx.x];
    __syncthreads();
    float w = offsets[blockIdx.x * 256 + threadIdx.x], s = 0, c = 1, ds, dc;
    __sincosf(w, &ds, &dc);
    float2 sum = {0, 0};
    for (int begin = 0; begin < terms; begin += 64) {
        __sincosf(w * begin, &s, &c);
#pragma unroll 8
        for (int k = begin; k < begin + 64; ++k) {
            if (afresh) __sincosf(w * k, &s, &c);
            sum.x = fmaf(g[k].x, c, sum.x), sum.y = fmaf(g[k].y, s, sum.y);
            if (!afresh) {
                float turned = fmaf(c, dc, -s * ds);
                s = fmaf(s, dc, c * ds);
                c = turned;
            }
        }
    }
    signals[blockIdx.x * 256 + threadIdx.x] = sum;
}
PAIR(resonance, "knee-joint") {
    const int pixels = 1 << 20;
    float *offsets = buffer<float>(pixels, 0, 0.01);
    float2 *gains = (float2 *)buffer<float>(512), *signals = (float2 *)buffer<float>(2 * pixels);
    return [=] {
        for (int echo = 0; echo < 2; ++echo) LAUNCH(signal_of<ill>, pixels / 256, 256, 0, offsets, gains, signals, 256);
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// integer-division. Axes of a tensor (a, b, c, d, e) -> (c, a, d, b, e) before its contraction; places by 64-bit / and % of run-time extents: 8 of ~40 to 100 instructions an element; the twin has
// multipliers from the host (mulhi). 32 M floats: 256 MB = 0.06 ms at the roof; the twin ~0.1.
struct ByDivision {
    long long extent;
    explicit ByDivision(int e) : extent(e) {}
    __device__ long long split(long long &i) const {
        long long r = i % extent;
        i /= extent;
        return r;
    }
};
struct ByMultiplier {
    unsigned extent, multiplier, shift;
    explicit ByMultiplier(int e) : extent(e) {
        for (shift = 0; (1ull << shift) < extent;) ++shift;
        multiplier = (unsigned)(((1ull << 32) * ((1ull << shift) - extent)) / extent + 1);
    }
    __device__ long long split(long long &i) const {
        unsigned n = (unsigned)i, q = (__umulhi(n, multiplier) + n) >> shift;
        i = q;
        return n - q * extent;
    }
};
template <class Axis> __global__ void __launch_bounds__(256) axes_moved(const float *__restrict__ in, float *__restrict__ out, Axis b, Axis c, Axis d, Axis e, long long sa, long long sb, long long sc, long long sd, int n) {
    for (int at = blockIdx.x * 256 + threadIdx.x; at < n; at += gridDim.x * 256) {
        long long i = at, place = e.split(i);
        place += d.split(i) * sd;
        place += c.split(i) * sc;
        place += b.split(i) * sb;
        out[place + i * sa] = in[at];
    }
}
PAIR(axes, "contracted-legs") {
    const int a = 12, b = 30, c = 20, d = 50, e = 96, n = a * b * c * d * e;
    using Axis = std::conditional_t<ill, ByDivision, ByMultiplier>;
    float *in = buffer<float>(n), *out = buffer<float>(n);
    Axis B(b), C(c), D(d), E(e);
    return [=] {
        for (int k = 0; k < 2; ++k)
            LAUNCH(axes_moved<Axis>, 132 * 16, 256, 0, in, out, B, C, D, E, (long long)d * b * e, (long long)e, (long long)a * d * b * e, (long long)b * e, n);
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// contended-atomics. The next frontier of a breadth-first search: vertices are put in one of eight queues by their degree: an atomicAdd (with its result) on eight counters for each of 8 M vertices;
// the twin counts in shared memory and takes a place a block and queue.
__global__ void __launch_bounds__(1024) frontier(const uint8_t *__restrict__ degrees, unsigned *__restrict__ queues, unsigned *__restrict__ counts, int n, bool gathered) {
    __shared__ unsigned here[8], base[8];
    int v = blockIdx.x * 1024 + threadIdx.x;
    int queue = degrees[v];
    unsigned place;
    if (gathered) {
        if (threadIdx.x < 8) here[threadIdx.x] = 0;
        __syncthreads();
        unsigned same = __match_any_sync(~0u, queue), below = __popc(same & ((1u << threadIdx.x % 32) - 1));
        int leader = __ffs(same) - 1;
        if (below == 0) place = atomicAdd(here + queue, __popc(same));
        place = __shfl_sync(~0u, place, leader) + below;
        __syncthreads();
        if (threadIdx.x < 8) base[threadIdx.x] = atomicAdd(counts + threadIdx.x, here[threadIdx.x]);
        __syncthreads();
        place += base[queue];
    } else
        place = atomicAdd(counts + queue, 1u);
    queues[(size_t)queue * n + (place & (n - 1))] = v;
}
PAIR(breadth, "rumours") {
    const int n = 8 << 20;
    uint8_t *degrees = buffer<uint8_t>(n, 0, 8);
    unsigned *queues = buffer<unsigned>((size_t)8 * n), *counts = buffer<unsigned>(8);
    return [=] {
        CHECK(cudaMemsetAsync(counts, 0, 32));
        LAUNCH(frontier, n / 1024, 1024, 0, degrees, queues, counts, n, !ill);
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// barriers. Rows of 512 scores with the bias of a pair: softmax by a block with trees in shared memory: 20 barriers a row of which a thread has one element; the twin has a warp a row (shuffles).
// 131072 rows: 256 MB in, 256 out, the bias is in L2.
__global__ void __launch_bounds__(512) pair_softmax_block(const float *__restrict__ scores, const float *__restrict__ bias, float *__restrict__ out, int rows) {
    __shared__ float tree[512];
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        float x = scores[(size_t)row * 512 + threadIdx.x] + bias[(row & 511) * 512 + threadIdx.x];
        tree[threadIdx.x] = x;
        __syncthreads();
        for (int half = 256; half; half /= 2) {
            if (threadIdx.x < half) tree[threadIdx.x] = fmaxf(tree[threadIdx.x], tree[threadIdx.x + half]);
            __syncthreads();
        }
        x = __expf(x - tree[0]);
        __syncthreads();
        tree[threadIdx.x] = x;
        __syncthreads();
        for (int half = 256; half; half /= 2) {
            if (threadIdx.x < half) tree[threadIdx.x] += tree[threadIdx.x + half];
            __syncthreads();
        }
        out[(size_t)row * 512 + threadIdx.x] = x / tree[0];
        __syncthreads();
    }
}
__global__ void __launch_bounds__(512) pair_softmax_warp(const float *__restrict__ scores, const float *__restrict__ bias, float *__restrict__ out, int rows) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    for (int row = blockIdx.x * 16 + warp.meta_group_rank(); row < rows; row += gridDim.x * 16) {
        float x[16], most = -1e30f, sum = 0;
#pragma unroll
        for (int k = 0; k < 16; ++k) x[k] = scores[(size_t)row * 512 + k * 32 + warp.thread_rank()] + bias[(row & 511) * 512 + k * 32 + warp.thread_rank()], most = fmaxf(most, x[k]);
        most = cg::reduce(warp, most, cg::greater<float>());
#pragma unroll
        for (int k = 0; k < 16; ++k) sum += x[k] = __expf(x[k] - most);
        sum = 1 / cg::reduce(warp, sum, cg::plus<float>());
#pragma unroll
        for (int k = 0; k < 16; ++k) out[(size_t)row * 512 + k * 32 + warp.thread_rank()] = x[k] * sum;
    }
}
PAIR(pair_bias, "folded-chains") {
    const int rows = 131072;
    float *scores = buffer<float>((size_t)rows * 512, -4, 4), *bias = buffer<float>(512 * 512), *out = buffer<float>((size_t)rows * 512);
    return [=] {
        if (ill)
            LAUNCH(pair_softmax_block, 132 * 4, 512, 0, scores, bias, out, rows);
        else
            LAUNCH(pair_softmax_warp, 132 * 4, 512, 0, scores, bias, out, rows);
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// tail-wave. Forces of 7680 moons on 143,360 moonlets; a block of 1024 moonlets with a tile of 120 KB (one block an SM): 140 blocks = 132 and then 8. The twin's blocks take an eighth of the moons each: 1120
// pieces in 9 rounds of an eighth: 1.13 against 2. A piece: 1024 * 7680 * ~16 / 128 / 1.7 GHz = 0.58 ms.
__global__ void __launch_bounds__(1024) tugged(const float4 *__restrict__ bodies, float *__restrict__ pull, int sources, int parts) {
    extern __shared__ float4 tile[];
    int part = blockIdx.x % parts, i = blockIdx.x / parts * 1024 + threadIdx.x, mine = sources / parts;
    for (int k = threadIdx.x; k < mine; k += 1024) tile[k] = bodies[part * mine + k];
    __syncthreads();
    float4 p = bodies[i];
    float3 sum = {0, 0, 0};
#pragma unroll 4
    for (int k = 0; k < mine; ++k) {
        float4 q = tile[k];
        float dx = q.x - p.x, dy = q.y - p.y, dz = q.z - p.z, r = rsqrtf(fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, 1e-3f)))), f = q.w * r * r * r;
        sum.x = fmaf(f, dx, sum.x), sum.y = fmaf(f, dy, sum.y), sum.z = fmaf(f, dz, sum.z);
    }
    atomicAdd(pull + 3 * i, sum.x), atomicAdd(pull + 3 * i + 1, sum.y), atomicAdd(pull + 3 * i + 2, sum.z);
}
PAIR(tiles_of_bodies, "moonlets") {
    const int bodies = 140 * 1024, sources = 7680, parts = ill ? 1 : 8;
    float4 *all = (float4 *)buffer<float>(4 * bodies, -1, 1);
    float *pull = buffer<float>(3 * bodies);
    CHECK(cudaFuncSetAttribute(tugged, cudaFuncAttributeMaxDynamicSharedMemorySize, sources * 16));
    return [=] { LAUNCH(tugged, 140 * parts, 1024, sources * 16, all, pull, sources, parts); };
}

// ---------------------------------------------------------------------------------------------------------------------
// dependent-chain. Modes of a turbine blade: a thread a mode (16,896 of them: one warp a scheduler), a sum of 8192 products from shared memory, one accumulator: 4 cycles or more a product; the twin has
// eight accumulators.
template <int sums> __global__ void __launch_bounds__(128) modes(const float *__restrict__ shape, const float *__restrict__ loads, float *__restrict__ response, int rounds) {
    __shared__ float load[4096];
    for (int k = threadIdx.x; k < 4096; k += 128) load[k] = loads[k];
    __syncthreads();
    float w = shape[blockIdx.x * 128 + threadIdx.x], all = 0;
    for (int r = 0; r < rounds; ++r) {
        float s[sums], power = 1;
#pragma unroll
        for (int j = 0; j < sums; ++j) s[j] = 0, power *= w;
#pragma unroll 8
        for (int k = 0; k < 4096; k += sums)
#pragma unroll
            for (int j = 0; j < sums; ++j) s[j] = fmaf(s[j], power, load[k + j]);
        float total = 0;
#pragma unroll
        for (int j = 0; j < sums; ++j) total = fmaf(total, w, s[j]);
        all += total;
        w *= 0.999f;
    }
    response[blockIdx.x * 128 + threadIdx.x] = all;
}
PAIR(vibrations, "turbine-blade") {
    float *shape = buffer<float>(132 * 128, 0.1, 0.9), *loads = buffer<float>(4096), *response = buffer<float>(132 * 128);
    return [=] { LAUNCH((modes<ill ? 1 : 8>), 132, 128, 0, shape, loads, response, 48); };
}

// =====================================================================================================================
// Healthy.
// dram-bound. Rows of 512 B by random number from a table of 2 GB: whole lines, a warp a row: a gather, but no byte is in vain. 1 M rows: 0.5 GB in and out.
__global__ void __launch_bounds__(256) rows_by_number(const float4 *__restrict__ table, const int *__restrict__ numbers, float4 *__restrict__ out, int n) {
    int lane = threadIdx.x % 32;
    for (int at = (blockIdx.x * 256 + threadIdx.x) / 32 * 4; at < n; at += gridDim.x * 32) {
        float4 x[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) x[k] = table[(size_t)numbers[at + k] * 32 + lane];
#pragma unroll
        for (int k = 0; k < 4; ++k) __stcs(out + (size_t)(at + k) * 32 + lane, x[k]);
    }
}
CASE(whole_rows, "postcards") {
    const int rows = 4 << 20, n = 1 << 20;
    float4 *table = (float4 *)buffer<float>((size_t)rows * 128), *out = (float4 *)buffer<float>((size_t)n * 128);
    int *numbers = buffer<int>(n, 0, rows);
    return [=] { LAUNCH(rows_by_number, 132 * 8, 256, 0, table, numbers, out, n); };
}

// l2-bound. Shallow water's smoother: five-point stencil, 1536 x 2048 (12 MB in, 12 MB out): in L2 for all of 60 sweeps.
__global__ void __launch_bounds__(256) ripples(const float *__restrict__ a, float *__restrict__ b, int width, int height) {
    int x = blockIdx.x * 64 + threadIdx.x % 64, y = blockIdx.y * 16 + threadIdx.x / 64;
#pragma unroll
    for (int k = 0; k < 16; k += 4) {
        int row = y + k, up = max(row - 1, 0) * width, down = min(row + 1, height - 1) * width, here = row * width;
        b[here + x] = 0.5f * a[here + x] + 0.125f * (a[up + x] + a[down + x] + a[here + max(x - 1, 0)] + a[here + min(x + 1, width - 1)]);
    }
}
CASE(smoother, "village-pond") {
    const int width = 2048, height = 1536;
    float *a = buffer<float>(width * height), *b = buffer<float>(width * height);
    return [=] {
        for (int k = 0; k < 60; ++k) LAUNCH(ripples, dim3(width / 64, height / 16), 256, 0, k % 2 ? b : a, k % 2 ? a : b, width, height);
    };
}

// compute-bound. Boys functions for integrals that must be right to 1e-13: doubles by need, six independent sums a thread, FP64 pipe full.
__global__ void __launch_bounds__(256) boys(const double *__restrict__ arguments, double *__restrict__ values, int terms) {
    int i = blockIdx.x * 256 + threadIdx.x;
    double t = arguments[i], term[6], sum[6];
#pragma unroll
    for (int m = 0; m < 6; ++m) term[m] = 1.0 / (2 * m + 1), sum[m] = term[m];
    double scale = 0.03 * t;
#pragma unroll 2
    for (int k = 1; k < terms; ++k) {
#pragma unroll
        for (int m = 0; m < 6; ++m) term[m] = fma(term[m], scale, term[m] * 1e-3), sum[m] += term[m];
    }
    double all = 0;
#pragma unroll
    for (int m = 0; m < 6; ++m) all += sum[m];
    values[i] = all;
}
CASE(boys_functions, "charge-clouds") {
    const int n = 1 << 20;
    double *arguments = buffer<double>(n), *values = buffer<double>(n);
    return [=] { LAUNCH(boys, n / 256, 256, 0, arguments, values, 100); };
}

// occupancy-enough. Two pictures are blended: 132 blocks of 256 (8 warps an SM), but each thread has 16 loads of 16 B under way: 64 KB an SM, DRAM's roof.
__global__ void __launch_bounds__(256, 1) blended(const float4 *__restrict__ a, const float4 *__restrict__ b, float4 *__restrict__ out, size_t n, float share) {
    for (size_t base = (size_t)blockIdx.x * 256 * 8 + threadIdx.x; base + 256 * 7 < n; base += (size_t)gridDim.x * 256 * 8) {
        float4 x[8], y[8];
#pragma unroll
        for (int k = 0; k < 8; ++k) x[k] = __ldcs(a + base + 256 * k), y[k] = __ldcs(b + base + 256 * k);
#pragma unroll
        for (int k = 0; k < 8; ++k) __stcs(out + base + 256 * k, make_float4(fmaf(share, y[k].x - x[k].x, x[k].x), fmaf(share, y[k].y - x[k].y, x[k].y), fmaf(share, y[k].z - x[k].z, x[k].z), fmaf(share, y[k].w - x[k].w, x[k].w)));
    }
}
CASE(two_pictures, "double-exposure") {
    const size_t n = 16 << 20;
    float4 *a = (float4 *)buffer<float>(4 * n), *b = (float4 *)buffer<float>(4 * n), *out = (float4 *)buffer<float>(4 * n);
    return [=] { LAUNCH(blended, 264, 256, 0, a, b, out, n, 0.3f); };
}

// shared-memory-bound. Distances by product quantisation, tables of a query in shared memory, four distances an entry, repeated for the lanes: [code][lane % 8], loads of 16 B without conflicts (4 wavefronts),
// four additions for each: 32 loads an item: 8 M * 32 / 32 * 4 / 132 = 254 K wavefronts an SM = 0.15 ms; 0.17 GB.
__global__ void __launch_bounds__(256) table_sums(const float *__restrict__ tables, const uint4 *__restrict__ codes, float *__restrict__ distances, int n) {
    extern __shared__ float4 t[];
    for (int k = threadIdx.x; k < 256 * 8; k += 256) t[k] = ((const float4 *)tables)[k];
    __syncthreads();
    const char *mine = (const char *)(t + threadIdx.x % 8);
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        float4 sum = {0, 0, 0, 0};
        uint4 all = codes[i];
        unsigned words[4] = {all.x, all.y, all.z, all.w};
#pragma unroll
        for (int w = 0; w < 4; ++w)
#pragma unroll
            for (int k = 0; k < 8; ++k) {
                float4 entry = *(const float4 *)(mine + (__funnelshift_r(words[w], words[w], 3 * k) & 255u << 7)); // 8 bits, times 128 B
                sum.x += entry.x, sum.y += entry.y, sum.z += entry.z, sum.w += entry.w;
            }
        distances[i] = sum.x + sum.y + sum.z + sum.w;
    }
}
CASE(quantised_distances, "near-enough") {
    const int n = 8 << 20;
    float *tables = buffer<float>(256 * 32), *distances = buffer<float>(n);
    uint4 *codes = (uint4 *)buffer<unsigned>(4 * (size_t)n, 0, 4294967295.0);
    CHECK(cudaFuncSetAttribute(table_sums, cudaFuncAttributeMaxDynamicSharedMemorySize, 32768));
    return [=] { LAUNCH(table_sums, 132 * 6, 256, 32768, tables, codes, distances, n); };
}

int main(int argc, char **argv) { return run_cases(argc, argv); }
