// A ninth set of kernels: one planted illness a case (or none); NAME.cured gives the same without it.
#include "harness.h"
#include <algorithm>
#include <cmath>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cub/block/block_reduce.cuh>
#include <cuda_fp16.h>
#include <mma.h>
#include <numeric>
#include <thrust/device_ptr.h>
#include <thrust/sort.h>

namespace cg = cooperative_groups;

#define PAIR(id, name)                                                                                                 \
    template <bool ill> Step id();                                                                                     \
    CASE(id##_as_is, name) { return id<true>(); }                                                                      \
    CASE(id##_better, name ".cured") { return id<false>(); }                                                           \
    template <bool ill> Step id()

__device__ inline float warp_total(float x) { return cg::reduce(cg::tiled_partition<32>(cg::this_thread_block()), x, cg::plus<float>()); }

// Company for some cases: a stream of `n` floats in, one out (DRAM, ~n * 8 B / 4.3 TB/s).
__global__ void leaky(const float *__restrict__ in, float *__restrict__ out, int n, float leak) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float x = in[i];
        out[i] = x > 0.5f ? x : leak * x;
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// uncoalesced-access. A register of 26 qubits (512 MB); gates on qubit 3: pairs of amplitudes 8 apart. The pair of a thread: "block of the gate" from the low bits, "within the block" from the high
// ones: neighbours are 16 amplitudes = 128 B apart: 8 B of each sector of 32: ~4 GB of sectors a gate (0.9 ms or more) against 1 GB (0.24 ms). Two gates a step.
template <bool far> __global__ void rotated(float2 *state, int pairs, int qubit, float c, float s) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= pairs) return;
    int inner = 1 << qubit, blocks = pairs >> qubit;
    int block = far ? t & (blocks - 1) : t >> qubit, within = far ? t >> (__ffs(blocks) - 1) : t & (inner - 1);
    int a = block * 2 * inner + within, b = a + inner;
    float2 x = state[a], y = state[b];
    state[a] = {c * x.x - s * y.x, c * x.y - s * y.y};
    state[b] = {s * x.x + c * y.x, s * x.y + c * y.y};
}
PAIR(qubits, "cold-register") {
    const int amplitudes = 1 << 26;
    float2 *state = (float2 *)buffer<float>(2 * (size_t)amplitudes, -1, 1);
    return [=] {
        LAUNCH(rotated<ill>, amplitudes / 2 / 256, 256, 0, state, amplitudes / 2, 3, 0.8f, 0.6f);
        LAUNCH(rotated<ill>, amplitudes / 2 / 256, 256, 0, state, amplitudes / 2, 4, 0.6f, 0.8f);
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// array-of-structures. Returns of a scanner, 64 B each; the height above ground (4 B) is looked at: a sector of 32 B for 4. 24 M returns: 0.77 GB (DRAM may bring 64 B: 1.5) = 0.18 to 0.35 ms,
// the twin 96 MB = 0.025 ms. Beside it a stream of 64 MB (0.03 ms). Three passes.
struct Return {
    float x, y, z, intensity;
    double time;
    short ring, echo;
    float normal[3], reflectance, range, azimuth, elevation;
    int scan;
};
static_assert(sizeof(Return) == 64, "64 bytes");
struct HeightsInReturns {
    const Return *all;
    __device__ float operator()(int i) const { return all[i].z; }
};
struct HeightsAlone {
    const float *z;
    __device__ float operator()(int i) const { return z[i]; }
};
template <class Heights> __global__ void __launch_bounds__(256) canopy(Heights height, int n, float ground, unsigned long long *above) {
    using Reduce = cub::BlockReduce<int, 256>;
    __shared__ typename Reduce::TempStorage scratch;
    int mine = 0;
#pragma unroll 4
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) mine += height(i) > ground;
    int all = Reduce(scratch).Sum(mine);
    if (threadIdx.x == 0) atomicAdd(above, (unsigned long long)all);
}
PAIR(lidar, "hedges-from-the-air") {
    const int n = 24 << 20, other = 8 << 20;
    unsigned long long *above = buffer<unsigned long long>(8, 0, 0);
    float *in = buffer<float>(other), *out = buffer<float>(other);
    float *records = buffer<float>((size_t)n * (ill ? 16 : 1));
    return [=] {
        for (int k = 0; k < 3; ++k) {
            if constexpr (ill)
                LAUNCH(canopy, 132 * 8, 256, 0, HeightsInReturns{(Return *)records}, n, 0.2f * k, above + k);
            else
                LAUNCH(canopy, 132 * 8, 256, 0, HeightsAlone{records}, n, 0.2f * k, above + k);
        }
        LAUNCH(leaky, 132 * 8, 256, 0, in, out, other, 0.1f);
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// random-gather. A join of 48 M rows of a fact table with a dimension of 64 M entries of 4 B (256 MB) by their number: a sector (or two) for 4 B each: 48 M x 32..64 B = 1.5 to 3 GB: 0.5 to 1 ms.
// The twin's facts are clustered by that number (sorted at start): 192 MB + at most 256 MB: 0.1 ms. Sums of integers: the same.
__global__ void joined(const unsigned *__restrict__ keys, const unsigned *__restrict__ rates, int n, unsigned long long *total) {
    unsigned long long mine = 0;
#pragma unroll 4
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += rates[keys[i]] & 0xffff;
    for (int o = 16; o; o >>= 1) mine += __shfl_down_sync(~0u, mine, o);
    if (threadIdx.x % 32 == 0) atomicAdd(total + blockIdx.x % 32 * 8, mine);
}
PAIR(customs, "customs-declarations") {
    const int n = 48 << 20;
    const unsigned entries = 64u << 20;
    unsigned *keys = buffer<unsigned>(n, 0, entries), *rates = buffer<unsigned>(entries, 0, 1e6);
    unsigned long long *total = buffer<unsigned long long>(256, 0, 0);
    if (!ill) {
        CHECK(cudaDeviceSynchronize());
        thrust::sort(thrust::device_pointer_cast(keys), thrust::device_pointer_cast(keys + n));
    }
    const int other = 48 << 20;
    float *in = buffer<float>(other), *out = buffer<float>(other); // beside: a stream of 0.09 ms
    return [=] {
        LAUNCH(leaky, 132 * 8, 256, 0, in, out, other, 0.1f);
        LAUNCH(joined, 132 * 8, 256, 0, keys, rates, n, total);
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// narrow-access. A codec's deblocking: means of 17 rows in each of 24 pictures of 4096 x 2048 bytes, a byte a thread: 200 M x 18 accesses of 1 B: 113 M warp-instructions of LSU / 132 SMs = 0.86 M
// cycles = 0.5 ms (and three more instructions each); the twin has four columns a thread in 32-bit words: a quarter (then DRAM: 400 MB, 0.1 ms).
const int codec_width = 4096, codec_height = 2048, codec_reach = 8;
__global__ void deblock_bytes(const uint8_t *__restrict__ in, uint8_t *__restrict__ out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    size_t base = (size_t)blockIdx.z * codec_width * codec_height;
    int sum = 0;
#pragma unroll
    for (int d = -codec_reach; d <= codec_reach; ++d) sum += in[base + (size_t)min(max(y + d, 0), codec_height - 1) * codec_width + x];
    out[base + (size_t)y * codec_width + x] = sum * 241 >> 12;
}
__global__ void deblock_words(const uint32_t *__restrict__ in, uint32_t *__restrict__ out) {
    const int words = codec_width / 4;
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    size_t base = (size_t)blockIdx.z * words * codec_height;
    uint32_t even = 0, odd = 0;
#pragma unroll
    for (int d = -codec_reach; d <= codec_reach; ++d) {
        uint32_t word = in[base + (size_t)min(max(y + d, 0), codec_height - 1) * words + x];
        even += word & 0xff00ff, odd += word >> 8 & 0xff00ff;
    }
    auto mean = [](uint32_t sum) { return sum * 241 >> 12 & 0xff; };
    out[base + (size_t)y * words + x] = mean(even & 0xffff) | mean(odd & 0xffff) << 8 | mean(even >> 16) << 16 | mean(odd >> 16) << 24;
}
PAIR(codec, "stills-of-a-play") {
    const int pictures = 24;
    const size_t bytes = (size_t)pictures * codec_width * codec_height;
    uint32_t *in = buffer<uint32_t>(bytes / 4, 0, 4.29e9), *out = buffer<uint32_t>(bytes / 4);
    return [=] {
        if (ill)
            LAUNCH(deblock_bytes, dim3(codec_width / 256, codec_height, pictures), 256, 0, (uint8_t *)in, (uint8_t *)out);
        else
            LAUNCH(deblock_words, dim3(codec_width / 1024, codec_height, pictures), 256, 0, in, out);
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// bank-conflicts. Alignments of short reads, one a thread, against windows of 32 letters: the row of the dynamic program lies in shared memory, 40 cells a thread (of 41 in the twin): 8 lanes meet in
// a bank. 135 K reads x 64 letters x 32 cells x 2 accesses = 17 M warp-accesses x 8 / 132 SMs = 1.05 M cycles = 0.6 ms against ~0.15 ms.
__global__ void aligned(const uint8_t *__restrict__ reads, const uint32_t *__restrict__ windows, int *scores, int n, int length, int pitch) {
    extern __shared__ int rows[];
    int *row = rows + threadIdx.x * pitch, t = blockIdx.x * blockDim.x + threadIdx.x, best = 0;
    uint32_t low = windows[t], high = windows[t + n];
    for (int c = 0; c < 32; ++c) row[c] = 0;
    for (int i = 0; i < length; ++i) {
        uint32_t letter = reads[(size_t)i * n + t] & 3;
        int corner = 0, left = 0;
        uint32_t differs_low = low ^ -(letter & 1), differs_high = high ^ -(letter >> 1);
        uint32_t differs = differs_low | differs_high;
#pragma unroll 8
        for (int c = 0; c < 32; ++c) {
            int up = row[c];
            int here = max(max(corner + (differs >> c & 1 ? -1 : 2), 0), max(up, left) - 2);
            row[c] = here, corner = up, left = here, best = max(best, here);
        }
    }
    scores[t] = best;
}
PAIR(alignment, "cheese-cultures") {
    const int n = 132 * 8 * 128, length = 64, pitch = ill ? 40 : 41;
    uint8_t *reads = buffer<uint8_t>((size_t)n * length, 0, 256);
    uint32_t *windows = buffer<uint32_t>(2 * n, 0, 4.29e9);
    int *scores = buffer<int>(n);
    return [=] { LAUNCH(aligned, n / 128, 128, 128 * pitch * 4, reads, windows, scores, n, length, pitch); };
}

// ---------------------------------------------------------------------------------------------------------------------
// register-spills. Kalman filters, a track a thread: 6 states, a covariance of 36 in registers; "at least 8 blocks of 256 an SM" leaves 32 registers. 1 M tracks x 32 observations: tens of spilled
// words each way an observation: ~1 M x 32 x 80 x 4 B = 10 GB of L1 and L2 traffic: ms; the twin without the bound: ~110 registers, 500 FMAs an observation: 0.5 ms.
template <int blocks> __global__ void __launch_bounds__(256, blocks) filtered(const float *__restrict__ seen, float *__restrict__ out, int n, int observations, float dt, float noise, float drift) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    float x[6], P[6][6];
#pragma unroll
    for (int i = 0; i < 6; ++i) {
        x[i] = 0;
#pragma unroll
        for (int j = 0; j < 6; ++j) P[i][j] = i == j ? 1.f : 0.f;
    }
#pragma unroll 1
    for (int o = 0; o < observations; ++o) {
#pragma unroll
        for (int i = 0; i < 3; ++i) x[i] = fmaf(dt, x[i + 3], x[i]);
#pragma unroll
        for (int i = 0; i < 3; ++i)
#pragma unroll
            for (int j = 0; j < 6; ++j) P[i][j] = fmaf(dt, P[i + 3][j], P[i][j]);
#pragma unroll
        for (int i = 0; i < 6; ++i)
#pragma unroll
            for (int j = 0; j < 3; ++j) P[i][j] = fmaf(dt, P[i][j + 3], P[i][j]);
#pragma unroll
        for (int i = 0; i < 6; ++i) P[i][i] += drift;
#pragma unroll
        for (int m = 0; m < 3; ++m) { // the three coordinates, one after the other
            float scale = __fdividef(1.f, P[m][m] + noise), surprise = (seen[((size_t)o * 3 + m) * n + t] - x[m]) * scale, gain[6], row[6];
#pragma unroll
            for (int i = 0; i < 6; ++i) row[i] = P[m][i], gain[i] = P[i][m];
#pragma unroll
            for (int i = 0; i < 6; ++i) {
                x[i] = fmaf(gain[i], surprise, x[i]);
#pragma unroll
                for (int j = 0; j < 6; ++j) P[i][j] = fmaf(-gain[i] * scale, row[j], P[i][j]);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 6; ++i) out[(size_t)i * n + t] = x[i] + 0.1f * P[i][i];
}
PAIR(kalman, "balloons-in-a-rally") {
    const int n = 1 << 20, observations = 32;
    float *seen = buffer<float>((size_t)n * 3 * observations), *out = buffer<float>(6 * (size_t)n);
    return [=] { LAUNCH((filtered<ill ? 8 : 1>), n / 256, 256, 0, seen, out, n, observations, 0.1f, 0.05f, 0.01f); };
}

// ---------------------------------------------------------------------------------------------------------------------
// local-array-indexing. Queues at a ferry, a replica a thread, with random numbers of a lagged Fibonacci generator (17, 5): its ring is an array indexed at run time: three accesses of local memory a
// number, each of which waits for the last but four; the twin goes round the ring in an unrolled loop: registers. 540 K replicas x 1088 numbers: 18 M warps' numbers x 3 / 132 = 0.42 M cycles of LSU
// at least + ~12 more instructions: 0.4 ms and up, against 5 instructions: 0.1 ms.
template <bool ring> __global__ void __launch_bounds__(256) waited(float *out, int rounds, float load) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t state[17];
#pragma unroll
    for (int k = 0; k < 17; ++k) state[k] = hashed(t * 17 + k) | 1;
    float wait = 0, sum = 0;
    auto ferry = [&](uint32_t x) {
        wait = fmaxf(wait + __uint_as_float(x >> 9 | 0x3f800000) - load, 0.f);
        sum += wait;
    };
    if (ring) {
        int i = 0, j = 12;
#pragma unroll 1
        for (int r = 0; r < rounds * 17; ++r) {
            uint32_t x = state[i] + state[j];
            state[i] = x;
            i = i == 16 ? 0 : i + 1, j = j == 16 ? 0 : j + 1;
            ferry(x);
        }
    } else {
#pragma unroll 1
        for (int r = 0; r < rounds; ++r)
#pragma unroll
            for (int k = 0; k < 17; ++k) ferry(state[k] += state[(k + 12) % 17]);
    }
    out[t] = sum;
}
PAIR(ferry, "cars-for-the-ferry") {
    const int blocks = 132 * 16;
    float *out = buffer<float>(blocks * 256);
    return [=] { LAUNCH(waited<ill>, blocks, 256, 0, out, 64, 1.55f); };
}

// ---------------------------------------------------------------------------------------------------------------------
// divergence. Implied rates of quotes by damped Newton steps until they agree: 9 of 10 quotes need ~10 steps, one in ten ~250 (deep out of the money): a warp goes on for its slowest lane: ~14 % of the
// lanes are active. The twin has the quotes by kind. 4 M quotes x 250 steps x ~8 instructions / 32 / 528 schedulers = 0.5 M cycles = 0.3 ms against 0.05 ms. Beside: a stream of 0.06 ms.
__global__ void implied(const float *__restrict__ price, const float *__restrict__ damping, float *__restrict__ rate, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float target = price[i], damp = damping[i], x = 1.f, off;
    int steps = 0;
    do {
        off = fmaf(x * x, x, x) - target;
        x = fmaf(-damp, off, x);
    } while (fabsf(off) > 1e-4f && ++steps < 1000);
    rate[i] = x;
}
PAIR(quotes, "harvest-futures") {
    const int n = 8 << 20, other = 16 << 20;
    std::vector<float> price(n), damping(n);
    for (int i = 0; i < n; ++i) {
        unsigned h = i * 2654435761u;
        bool deep = ill ? (h >> 8) % 10 == 0 : i < n / 10;
        price[i] = 1.f + (h >> 16) / 65536.f, damping[i] = deep ? 0.009f : 0.2f;
    }
    float *p = copied(price), *d = copied(damping), *rate = buffer<float>(n), *in = buffer<float>(other), *out = buffer<float>(other);
    return [=] {
        LAUNCH(implied, n / 256, 256, 0, p, d, rate, n);
        LAUNCH(leaky, 132 * 8, 256, 0, in, out, other, 0.1f);
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// fp64-by-accident. The activation of a feed-forward layer (x tanh(log(1 + exp x))), with a constant without f: exponential, logarithm and tanh in FP64 (~130 instructions, two conversions): 64 M x 130 / 32 / 2 a cycle
// / 132 SMs = 1 M cycles = 0.6 ms and more; the twin in FP32: ~0.15 ms (DRAM, 512 MB, 0.12 ms).
template <typename Real> __global__ void activated(const float *__restrict__ in, float *__restrict__ out, int n, Real beta) {
    const Real one = Real(1.0);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float x = in[i];
        out[i] = x * tanh(log(one + exp(beta * x)));
    }
}
PAIR(activation, "peppers-by-ripeness") {
    const int n = 64 << 20;
    float *in = buffer<float>(n, -3, 3), *out = buffer<float>(n);
    using Real = std::conditional_t<ill, double, float>;
    return [=] { LAUNCH((activated<Real>), 132 * 16, 256, 0, in, out, n, Real(1.1)); };
}

// ---------------------------------------------------------------------------------------------------------------------
// special-functions. Bells by additive synthesis: 2 M samples of 384 partials at whole multiples: a sine and a cosine each (two instructions of XU: 16 cycles a warp of a scheduler): 1.6 M x 384 / 32 x 16 /
// 528 = 0.6 M cycles = 0.34 ms; the twin turns a phasor (6 FMAs): ~0.14 ms.
template <bool direct> __global__ void rung(const float2 *__restrict__ partials, float *__restrict__ sound, int count, float pitch) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    float phase = pitch * (t & 0xffff), sum = 0;
    if (direct) {
#pragma unroll 4
        for (int k = 0; k < count; ++k) {
            float2 a = __ldg(partials + k);
            float s, c;
            __sincosf(phase * k, &s, &c);
            sum = fmaf(a.x, s, fmaf(a.y, c, sum));
        }
    } else {
        float ds, dc, s = 0, c = 1;
        sincosf(phase, &ds, &dc);
#pragma unroll 4
        for (int k = 0; k < count; ++k) {
            float2 a = __ldg(partials + k);
            sum = fmaf(a.x, s, fmaf(a.y, c, sum));
            float next = fmaf(c, dc, -s * ds);
            s = fmaf(s, dc, c * ds), c = next;
        }
    }
    sound[t] = sum;
}
PAIR(bells, "carillon") {
    const int n = 132 * 64 * 256, partials = 384;
    float2 *strengths = (float2 *)buffer<float>(2 * partials, -1, 1);
    float *sound = buffer<float>(n);
    return [=] { LAUNCH(rung<ill>, n / 256, 256, 0, strengths, sound, partials, 1e-5f); };
}

// ---------------------------------------------------------------------------------------------------------------------
// integer-division. A general permutation of the axes of a tensor of 40 M floats: the place of an element by three divisions of 64-bit numbers by extents known at run time (~80 instructions each): 40 M x
// 260 / 32 / 528 = 0.6 M cycles = 0.35 ms and more; the twin multiplies by 32-bit reciprocals: DRAM, 320 MB, 0.08 ms. The innermost axis stays: accesses are coalesced.
struct Slow64 {
    size_t by;
    __device__ size_t over(size_t n) const { return n / by; }
};
struct Quick32 {
    unsigned by, magic, shift;
    Quick32(unsigned d = 1) : by(d) {
        for (shift = 0; (1ull << shift) < d; ++shift) {}
        magic = (unsigned)(((1ull << 32) * ((1ull << shift) - d)) / d + 1);
    }
    __device__ unsigned over(unsigned n) const { return (__umulhi(n, magic) + n) >> shift; } // for n < 2^31
};
template <class Divisor, typename Index> __global__ void permuted(const float *__restrict__ in, float *__restrict__ out, Index n, Divisor c, Divisor b, Divisor a) {
    for (Index i = blockIdx.x * (Index)blockDim.x + threadIdx.x; i < n; i += (Index)gridDim.x * blockDim.x) {
        Index q = c.over(i), inner = i - q * c.by, q2 = b.over(q), second = q - q2 * b.by, q3 = a.over(q2), first = q2 - q3 * a.by;
        out[((q3 * b.by + second) * a.by + first) * c.by + inner] = in[i];
    }
}
PAIR(axes, "loom-of-many-shafts") {
    const unsigned d0 = 30, d1 = 48, d2 = 60, d3 = 480, n = d0 * d1 * d2 * d3;
    float *in = buffer<float>(n), *out = buffer<float>(n);
    return [=] {
        if constexpr (ill)
            LAUNCH((permuted<Slow64, size_t>), 132 * 8, 256, 0, in, out, n, Slow64{d3}, Slow64{d2}, Slow64{d1});
        else
            LAUNCH((permuted<Quick32, unsigned>), 132 * 8, 256, 0, in, out, n, Quick32(d3), Quick32(d2), Quick32(d1));
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// unfused-multiply-add. A neural ODE, a trajectory a thread: 8 states, 16 hidden units, midpoint steps; "reproducible on every machine": __fmul_rn and __fadd_rn. 541 K x 96 stages x 256 products = 1.33e10:
// 2 x that / 3.2e13 = 0.83 ms against 0.42 ms.
__constant__ float field_in[16][8], field_out[8][16];
struct Reproducible {
    static __device__ float fold(float a, float b, float c) { return __fadd_rn(__fmul_rn(a, b), c); }
};
struct Contracted {
    static __device__ float fold(float a, float b, float c) { return a * b + c; }
};
template <class Sum> __global__ void __launch_bounds__(256) flowed(const float *__restrict__ start, float *__restrict__ end, int n, int stages, float h) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    float y[8], at[8], rate[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) at[i] = y[i] = start[(size_t)i * n + t];
#pragma unroll 1
    for (int s = 0; s < stages; ++s) {
#pragma unroll
        for (int i = 0; i < 8; ++i) rate[i] = 0.f;
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            float u = 0.1f;
#pragma unroll
            for (int i = 0; i < 8; ++i) u = Sum::fold(field_in[k][i], at[i], u);
            u = fmaxf(u, 0.f);
#pragma unroll
            for (int i = 0; i < 8; ++i) rate[i] = Sum::fold(field_out[i][k], u, rate[i]);
        }
        bool whole = s & 1;
        float step = whole ? h : 0.5f * h;
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            at[i] = Sum::fold(step, rate[i], y[i]);
            if (whole) y[i] = at[i];
        }
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) end[(size_t)i * n + t] = y[i];
}
PAIR(neural, "lynx-and-hare") {
    const int n = 132 * 16 * 256;
    float weights[128];
    for (int i = 0; i < 128; ++i) weights[i] = 0.3f * sinf(1.7f * i);
    CHECK(cudaMemcpyToSymbol(field_in, weights, sizeof weights));
    CHECK(cudaMemcpyToSymbol(field_out, weights, sizeof weights));
    float *start = buffer<float>(8 * (size_t)n), *end = buffer<float>(8 * (size_t)n);
    return [=] { LAUNCH((flowed<std::conditional_t<ill, Reproducible, Contracted>>), n / 256, 256, 0, start, end, n, 96, 0.01f); };
}

// ---------------------------------------------------------------------------------------------------------------------
// contended-atomics. Takings of 8 M tickets by 24 lines (cents): an atomic in global memory a ticket, all in three sectors: 8 M operations on one or two slices: ms; the twin adds up in shared memory, a
// table a warp, and has 24 atomics a block.
template <bool at_once> __global__ void __launch_bounds__(256) takings(const int2 *__restrict__ tickets, int n, unsigned *__restrict__ lines) {
    __shared__ unsigned mine[8][25];
    unsigned *here = mine[threadIdx.x / 32];
    if (!at_once) {
        for (int k = threadIdx.x; k < 8 * 25; k += 256) mine[0][k] = 0;
        __syncthreads();
    }
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        int2 ticket = tickets[i];
        atomicAdd((at_once ? lines : here) + ticket.x, (unsigned)ticket.y);
    }
    if (at_once) return;
    __syncthreads();
    if (threadIdx.x < 24) {
        unsigned sum = 0;
        for (int w = 0; w < 8; ++w) sum += mine[w][threadIdx.x];
        atomicAdd(lines + threadIdx.x, sum);
    }
}
PAIR(tickets, "tram-lines") {
    const int n = 8 << 20;
    std::vector<int2> all(n);
    for (int i = 0; i < n; ++i) {
        unsigned h = (i + 77u) * 2654435761u;
        all[i] = {(int)((h >> 12) % 24), (int)(h >> 24)};
    }
    int2 *sold = copied(all);
    unsigned *lines = buffer<unsigned>(32, 0, 0);
    return [=] { LAUNCH(takings<ill>, 132 * 4, 256, 0, sold, n, lines); };
}

// ---------------------------------------------------------------------------------------------------------------------
// barriers. Farthest points of clouds, a block of 1024 a cloud of 4096 points (in registers), 768 rounds: the farthest by a tree in shared memory with 10 barriers (~600 cycles a round) beside ~40 instructions
// of distances; the twin: two reductions of a warp (redux) and two barriers (~200). 264 clouds, two an SM: ~0.5 ms against ~0.25 ms.
template <bool tree> __global__ void __launch_bounds__(1024, 2) spread(const float *__restrict__ clouds, int *__restrict__ chosen, int rounds) {
    __shared__ unsigned long long best[1024];
    const float *x = clouds + (size_t)blockIdx.x * 3 * 4096, *y = x + 4096, *z = y + 4096;
    float px[4], py[4], pz[4], far[4];
    int t = threadIdx.x, last = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) px[k] = x[t + 1024 * k], py[k] = y[t + 1024 * k], pz[k] = z[t + 1024 * k], far[k] = 1e9f;
#pragma unroll 1
    for (int r = 0; r < rounds; ++r) {
        float cx = x[last], cy = y[last], cz = z[last];
        unsigned top = 0, place = 0;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            float dx = px[k] - cx, dy = py[k] - cy, dz = pz[k] - cz;
            far[k] = fminf(far[k], fmaf(dx, dx, fmaf(dy, dy, dz * dz)));
            unsigned bits = __float_as_uint(far[k]);
            if (bits > top) top = bits, place = t + 1024 * k;
        }
        if (tree) {
            best[t] = (unsigned long long)top << 32 | place;
            for (int s = 512; s; s >>= 1) {
                __syncthreads();
                if (t < s) best[t] = max(best[t], best[t + s]);
            }
            __syncthreads();
            last = (int)(best[0] & 0xffffffff);
            __syncthreads();
        } else {
            unsigned long long *mine = best + 32 * (r & 1);
            unsigned high = __reduce_max_sync(~0u, top), low = __reduce_max_sync(~0u, top == high ? place : 0);
            if (t % 32 == 0) mine[t / 32] = (unsigned long long)high << 32 | low;
            __syncthreads();
            unsigned long long other = mine[t % 32];
            high = __reduce_max_sync(~0u, (unsigned)(other >> 32));
            last = __reduce_max_sync(~0u, (unsigned)(other >> 32) == high ? (unsigned)other : 0);
        }
        if (t == 0) chosen[blockIdx.x * rounds + r] = last;
    }
}
PAIR(clouds, "scans-of-sculptures") {
    const int count = 264, rounds = 768;
    float *all = buffer<float>((size_t)count * 3 * 4096);
    int *chosen = buffer<int>(count * rounds);
    return [=] { LAUNCH(spread<ill>, count, 1024, 0, all, chosen, rounds); };
}

// ---------------------------------------------------------------------------------------------------------------------
// tail-wave. Back-projection of 140 slabs, a block of 1024 threads each (one fits an SM, by its registers): 8 blocks go on alone, as long again. The twin has the 16 strips of each slab in blocks of their
// own: 2240 blocks, 17 short waves: 1.06 instead of 2. 2.3 M pixels x 360 angles x 2 gathers from L1: ~0.5 ms a wave.
__global__ void __launch_bounds__(1024, 1) projected(const float *__restrict__ sinogram, const float2 *__restrict__ turn, float *__restrict__ volume, int angles, int strips) {
    int first = blockIdx.x * strips;
#pragma unroll 1
    for (int s = first; s < first + strips; ++s) {
        int slab = s / 16, strip = s % 16;
        float x = (threadIdx.x % 64) - 32.f, y = strip * 16 + threadIdx.x / 64 - 128.f, sum = 0;
#pragma unroll 8
        for (int a = 0; a < angles; ++a) {
            float2 cs = __ldg(turn + a);
            float at = fmaf(x, cs.x, fmaf(y, cs.y, 256.f + (slab & 7)));
            int bin = (int)at;
            float part = at - bin, l = __ldg(sinogram + a * 512 + bin), r = __ldg(sinogram + a * 512 + bin + 1);
            sum += fmaf(part, r - l, l);
        }
        volume[(size_t)s * 1024 + threadIdx.x] = sum;
    }
}
PAIR(tomography, "mummies") {
    const int slabs = 140, angles = 360;
    std::vector<float2> turn(angles);
    for (int a = 0; a < angles; ++a) turn[a] = {cosf(a * 3.14159265f / angles), sinf(a * 3.14159265f / angles)};
    float2 *turns = copied(turn);
    float *sinogram = buffer<float>(512 * (angles + 1)), *volume = buffer<float>((size_t)slabs * 16 * 1024);
    return [=] { LAUNCH(projected, ill ? slabs : slabs * 16, 1024, 0, sinogram, turns, volume, angles, ill ? 16 : 1); };
}

// ---------------------------------------------------------------------------------------------------------------------
// too-few-blocks. Loudest sample of 24 recordings of 8 M samples, a block of 1024 each: 24 of 132 SMs, at most ~60 GB/s each: 805 MB in ~0.6 ms; the twin has 11 blocks a recording and an atomic maximum:
// 0.18 ms.
__global__ void __launch_bounds__(1024) loudest(const float4 *__restrict__ samples, size_t each, unsigned *__restrict__ peak) {
    float top = 0;
    const float4 *mine = samples + blockIdx.y * each;
#pragma unroll 2
    for (size_t i = blockIdx.x * 1024 + threadIdx.x; i < each; i += gridDim.x * 1024) {
        float4 v = mine[i];
        top = fmaxf(fmaxf(top, fmaxf(fabsf(v.x), fabsf(v.y))), fmaxf(fabsf(v.z), fabsf(v.w)));
    }
    unsigned all = __reduce_max_sync(~0u, __float_as_uint(top));
    if (threadIdx.x % 32 == 0) atomicMax(peak + blockIdx.y, all);
}
PAIR(cylinders, "wax-cylinders") {
    const int recordings = 24;
    const size_t each = 2 << 20;
    float4 *samples = (float4 *)buffer<float>(recordings * each * 4, -1, 1);
    unsigned *peak = buffer<unsigned>(recordings, 0, 0);
    return [=] { LAUNCH(loudest, dim3(ill ? 1 : 11, recordings), 1024, 0, samples, each, peak); };
}

// ---------------------------------------------------------------------------------------------------------------------
// unequal-blocks. Kendall's rank correlation of 67584 pairs of grades: all later ones for each row; 512 rows in turn a block of 132: the first block has twice the mean, the last nothing. The twin deals the
// rows out one by one. 2.3e9 pairs x ~6 instructions / 32 / 528 = 0.8 M cycles = 0.47 ms at best, twice that ill.
__global__ void __launch_bounds__(1024) concordant(const float *__restrict__ a, const float *__restrict__ b, int n, bool in_turn, unsigned long long *total) {
    long long mine = 0;
    int rows = n / gridDim.x;
    for (int k = 0; k < rows; ++k) {
        int i = in_turn ? blockIdx.x * rows + k : k * gridDim.x + blockIdx.x, here = 0;
        float ai = a[i], bi = b[i];
#pragma unroll 4
        for (int j = i + 1 + threadIdx.x; j < n; j += 1024) here += (ai - a[j]) * (bi - b[j]) > 0.f;
        mine += here;
    }
    for (int o = 16; o; o >>= 1) mine += __shfl_down_sync(~0u, mine, o);
    if (threadIdx.x % 32 == 0) atomicAdd(total, (unsigned long long)mine);
}
PAIR(grades, "juries-of-skaters") {
    const int n = 132 * 512;
    float *a = buffer<float>(n), *b = buffer<float>(n + 12345) + 12345;
    unsigned long long *total = buffer<unsigned long long>(1, 0, 0);
    return [=] { LAUNCH(concordant, 132, 1024, 0, a, b, n, ill, total); };
}

// ---------------------------------------------------------------------------------------------------------------------
// occupancy-registers. Dives of tagged seals, a dive a thread, sample by sample until the surface (the next load waits for the last): latency. One dive in ~4000 has a jump, and is smoothed in a window of 176
// samples in registers: ~200 registers for all: 8 warps an SM, 132 x 8 x 128 B in 0.8 us = 0.17 TB/s. The twin notes those dives and smooths them in a second kernel: ~24 registers, 64 warps. 1 M dives
// x ~210 samples = 880 MB: 3 to 5 ms against ~0.7 ms.
const int dive_window = 176;
__device__ __forceinline__ float smoothed(const float *__restrict__ depth, int dives, int t) {
    float v[dive_window], sum = 0;
#pragma unroll
    for (int k = 0; k < dive_window; ++k) v[k] = depth[(size_t)k * dives + t];
#pragma unroll 1
    for (int r = 0; r < 6; ++r) {
        float first = v[0];
#pragma unroll
        for (int k = 0; k < dive_window; ++k) v[k] = fmaf(0.4f, (k + 1 < dive_window ? v[k + 1] : first) - v[k], v[k]);
    }
#pragma unroll
    for (int k = 0; k < dive_window; ++k) sum = fmaf(v[k], v[(k + 7) % dive_window], sum);
    return sum;
}
template <bool inside> __global__ void __launch_bounds__(128) dived(const float *__restrict__ depth, float *__restrict__ work, int dives, int longest, int *list) {
    int t = blockIdx.x * 128 + threadIdx.x;
    float effort = 0, last = 0.5f;
    bool jump = false;
    int s = 0;
#pragma unroll 1
    for (; s < longest; ++s) {
        float d = depth[(size_t)s * dives + t];
        if (d < 0.1f * (s > 200)) break; // the surface
        effort = fmaf(d, 0.1f, effort);
        jump |= d - last > 0.9995f;
        last = 0.5f * last + 0.5f * d;
        jump &= s < 120 || effort > 0.f;
    }
    jump = (hashed(t) & 4095) == 5 || (jump && effort < 0.f);
    if (jump) {
        if (inside)
            effort += smoothed(depth, dives, t);
        else
            list[1 + atomicAdd(list, 1)] = t;
    }
    work[t] = effort;
}
__global__ void __launch_bounds__(128) smoothed_later(const float *__restrict__ depth, float *__restrict__ work, int dives, const int *__restrict__ list) {
    for (int k = blockIdx.x * 128 + threadIdx.x; k < list[0]; k += gridDim.x * 128) work[list[1 + k]] += smoothed(depth, dives, list[1 + k]);
}
__global__ void emptied(int *list) { *list = 0; }
PAIR(seals, "tagged-seals") {
    const int dives = 1 << 20, longest = 240;
    float *depth = buffer<float>((size_t)dives * longest), *work = buffer<float>(dives);
    int *list = buffer<int>(1 + dives, 0, 0);
    return [=] {
        if (!ill) LAUNCH(emptied, 1, 1, 0, list);
        LAUNCH(dived<ill>, dives / 128, 128, 0, depth, work, dives, longest, list);
        if (!ill) LAUNCH(smoothed_later, 8, 128, 0, depth, work, dives, list);
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// occupancy-shared-memory. Autocorrelations (8 lags) of phrases of 1024 samples, a block of 128 each, staged in shared memory that is asked for by the longest phrase allowed (24 K samples, 96 KB): two blocks
// an SM: 264 x 4 KB in ~2.5 us = 0.4 TB/s: 128 K phrases = 537 MB: 1.2 ms; the twin asks for 4 KB: 16 blocks: ~0.2 to 0.3 ms.
__global__ void __launch_bounds__(128) lagged(const float *__restrict__ sound, float *__restrict__ lags, int length) {
    extern __shared__ float phrase[];
    __shared__ float parts[4][8];
    const float *mine = sound + (size_t)blockIdx.x * length;
    for (int i = threadIdx.x; i < length; i += 128) phrase[i] = mine[i];
    if (threadIdx.x < 8) phrase[length + threadIdx.x] = 0.f;
    __syncthreads();
    float sum[8] = {};
    for (int i = threadIdx.x; i < length; i += 128)
#pragma unroll
        for (int l = 0; l < 8; ++l) sum[l] = fmaf(phrase[i], phrase[i + l], sum[l]);
#pragma unroll
    for (int l = 0; l < 8; ++l) {
        float all = warp_total(sum[l]);
        if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32][l] = all;
    }
    __syncthreads();
    if (threadIdx.x < 8) lags[blockIdx.x * 8 + threadIdx.x] = parts[0][threadIdx.x] + parts[1][threadIdx.x] + parts[2][threadIdx.x] + parts[3][threadIdx.x];
}
PAIR(phrases, "choir-rehearsal") {
    const int count = 128 << 10, length = 1024, shared = (ill ? 24 * 1024 : length) * 4 + 32;
    CHECK(cudaFuncSetAttribute(lagged, cudaFuncAttributeMaxDynamicSharedMemorySize, 24 * 1024 * 4 + 32));
    float *sound = buffer<float>((size_t)count * length, -1, 1), *lags = buffer<float>(count * 8);
    return [=] { LAUNCH(lagged, count, 128, shared, sound, lags, length); };
}

// ---------------------------------------------------------------------------------------------------------------------
// occupancy-block-size. Capture files, a warp a file of packets of 128 B; a packet says how far the next one is: a load at a time, 0.7 us. A block is a warp: 32 an SM at most, half of the 64 warps: 132 x 32 x
// 128 B / 0.7 us = 0.77 TB/s; the twin has 8 files a block. 67.6 K files x 60 packets read = 520 MB: 0.67 ms against 0.35 ms.
__global__ void captured(const unsigned *__restrict__ packets, int each, int files, unsigned *__restrict__ sums) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int file = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
    if (file >= files) return;
    const unsigned *mine = packets + (size_t)file * each * 32;
    unsigned sum = 0;
#pragma unroll 1
    for (int at = 0; at < each;) {
        unsigned word = mine[at * 32 + warp.thread_rank()];
        sum = sum * 31 + word;
        at += 1 + (warp.shfl(word, 0) >> 16 & 1);
    }
    sum = cg::reduce(warp, sum, cg::bit_xor<unsigned>());
    if (warp.thread_rank() == 0) sums[file] = sum;
}
PAIR(capture, "night-of-traffic") {
    const int files = 132 * 512, each = 96;
    unsigned *packets = buffer<unsigned>((size_t)files * each * 32, 0, 4.29e9), *sums = buffer<unsigned>(files);
    return [=] { LAUNCH(captured, ill ? files : files / 8, ill ? 32 : 256, 0, packets, each, files, sums); };
}

// ---------------------------------------------------------------------------------------------------------------------
// dependent-chain. Generating functions of 32 populations at 16896 arguments, a thread each, 128 in the one block an SM: Horner's scheme over 6144 terms: a FMA of 4 cycles after the other, a warp a
// scheduler: 6144 x 4 x 32 = 0.8 M cycles = 0.45 ms; the twin has eight chains in x^8: ~0.15 ms.
template <int chains> __global__ void __launch_bounds__(128) generated(const float4 *__restrict__ terms, const float *__restrict__ arguments, float *__restrict__ values, int count, int populations) {
    extern __shared__ float4 kept[];
    int t = blockIdx.x * 128 + threadIdx.x;
    float x = arguments[t], power = x;
    for (int k = 1; k < chains; k *= 2) power *= power;
#pragma unroll 1
    for (int p = 0; p < populations; ++p) {
        __syncthreads();
        for (int k = threadIdx.x; k < count / 4; k += 128) kept[k] = terms[(size_t)p * count / 4 + k];
        __syncthreads();
        float sum[chains] = {}, all = 0;
#pragma unroll 4
        for (int k = 0; k < count / 8; ++k) {
            float4 a = kept[2 * k], b = kept[2 * k + 1];
            float term[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
            for (int c = 0; c < 8; ++c) sum[c % chains] = fmaf(sum[c % chains], power, term[c]);
        }
#pragma unroll
        for (int c = 0; c < chains; ++c) all = fmaf(all, x, sum[c]);
        values[(size_t)p * gridDim.x * 128 + t] = all;
    }
}
PAIR(litters, "litters-of-rabbits") {
    const int populations = 32, count = 6144, threads = 132 * 128, chains = ill ? 1 : 8;
    float4 *terms = (float4 *)buffer<float>(populations * count);
    float *arguments = buffer<float>(threads, 0.5, 0.99), *values = buffer<float>(threads * populations);
    const int other = 64 << 20;
    float *in = buffer<float>(other), *out = buffer<float>(other); // beside: a stream of 0.12 ms
    return [=] {
        LAUNCH(generated<chains>, 132, 128, count * 4, terms, arguments, values, count, populations);
        LAUNCH(leaky, 132 * 8, 256, 0, in, out, other, 0.1f);
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// instruction-cache. 48 fitted formulas of 1024 FMAs with their constants in the code (16 KB each, 800 KB in all); each warp evaluates 8 pieces of 32 samples, of one sort each. Sorts as they come: all warps
// of an SM are somewhere else; the twin has the pieces by sort: all run the same 16 KB at a time. 67.6 K warps x 8 x 1024 FMAs / 528 = 1 M cycles = 0.6 ms at best; ill: 16 B an instruction and
// warp from beyond the cache of 128 KB: twice and more.
__host__ __device__ constexpr float fitted(int formula, int k) {
    unsigned h = (formula * 1024u + k) * 2654435761u;
    h ^= h >> 15;
    h *= 2246822519u;
    return ((int)(h >> 16 & 0x7fff) - 16384) / 20000.f;
}
template <int formula> __device__ __noinline__ float formula_of(float x) {
    float a = x, b = 0.5f * x, c = 1.f - x, d = x * x;
#pragma unroll
    for (int k = 0; k < 1024; k += 4) {
        a = fmaf(a, x, fitted(formula, k));
        b = fmaf(b, x, fitted(formula, k + 1));
        c = fmaf(c, x, fitted(formula, k + 2));
        d = fmaf(d, x, fitted(formula, k + 3));
    }
    return a + b + c + d;
}
#define FORMULA(k) case k: return formula_of<k>(x);
#define FORMULAS(k) FORMULA(k) FORMULA(k + 1) FORMULA(k + 2) FORMULA(k + 3) FORMULA(k + 4) FORMULA(k + 5) FORMULA(k + 6) FORMULA(k + 7)
__device__ float evaluated(int formula, float x) {
    switch (formula) { FORMULAS(0) FORMULAS(8) FORMULAS(16) FORMULAS(24) FORMULAS(32) FORMULAS(40) }
    return x;
}
__global__ void __launch_bounds__(256) calibrated(const float *__restrict__ in, float *__restrict__ out, const unsigned char *__restrict__ sort, int each) {
    int warp = (blockIdx.x * 256 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    for (int p = warp * each; p < (warp + 1) * each; ++p) out[(size_t)p * 32 + lane] = evaluated(sort[p], in[(size_t)p * 32 + lane]);
}
PAIR(sensors_of_kinds, "weighbridges") {
    const int blocks = 132 * 64, each = 8, pieces = blocks * 8 * each;
    std::vector<unsigned char> sort(pieces);
    for (int p = 0; p < pieces; ++p) sort[p] = ill ? (unsigned)(p * 2654435761u) % 4080 / 85 : (long long)p * 48 / pieces;
    unsigned char *sorts = copied(sort);
    float *in = buffer<float>((size_t)pieces * 32, -0.9, 0.9), *out = buffer<float>((size_t)pieces * 32);
    return [=] { LAUNCH(calibrated, blocks, 256, 0, in, out, sorts, each); };
}

// ---------------------------------------------------------------------------------------------------------------------
// l2-capacity. A filter along time over 40 frames of 16 MB: 13 frames for each. Frame after frame: a frame is read again after 200 MB of others: from DRAM each time: 8.7 GB / 4.3 TB/s = 1.9 ms; in the twin a
// block takes its 256 pixels through all frames: 12 of 13 reads are hits: 1.3 GB: 0.35 ms.
__global__ void __launch_bounds__(256) steadied(const float *__restrict__ film, float *__restrict__ steady, int pixels, int frames, int at_a_time) {
    int x = blockIdx.x * 256 + threadIdx.x;
    for (int f = blockIdx.y * at_a_time; f < min(frames, (int)(blockIdx.y + 1) * at_a_time); ++f) {
        float sum = 0;
#pragma unroll
        for (int d = -6; d <= 6; ++d) sum = fmaf(0.1f - 0.01f * (d < 0 ? -d : d), __ldg(film + (size_t)min(max(f + d, 0), frames - 1) * pixels + x), sum);
        steady[(size_t)f * pixels + x] = sum;
    }
}
PAIR(film, "starlings-at-dusk") {
    const int pixels = 4 << 20, frames = 40;
    float *in = buffer<float>((size_t)pixels * frames), *out = buffer<float>((size_t)pixels * frames);
    return [=] { LAUNCH(steadied, dim3(pixels / 256, ill ? frames : 1), 256, 0, in, out, pixels, frames, ill ? 1 : frames); };
}

// ---------------------------------------------------------------------------------------------------------------------
// tensor-cores-unused. Eight experts of 512 tokens: 1024 -> 2048, FP16: tiles of 64 x 64 with FP32 FMAs: 17 GFLOP at ~25 TFLOP/s = 0.7 ms; the twin with WMMA: ~0.1 to 0.15 ms.
template <bool by_hand> __global__ void __launch_bounds__(256) expert(const half *__restrict__ tokens, const half *__restrict__ weights, float *__restrict__ out, int M_, int N, int K) {
    __shared__ __align__(16) half a[64][40], b[32][72]; // padded
    const half *A = tokens + (size_t)blockIdx.z * M_ * K + (size_t)blockIdx.y * 64 * K, *B = weights + (size_t)blockIdx.z * K * N + blockIdx.x * 64;
    float *C = out + (size_t)blockIdx.z * M_ * N + (size_t)blockIdx.y * 64 * N + blockIdx.x * 64;
    int t = threadIdx.x, tx = t % 16, ty = t / 16, warp = t / 32;
    float sum[4][4] = {};
    using namespace nvcuda::wmma;
    fragment<accumulator, 16, 16, 16, float> acc[2];
    if (!by_hand) fill_fragment(acc[0], 0.f), fill_fragment(acc[1], 0.f);
    for (int k = 0; k < K; k += 32) {
        *(uint4 *)&a[t / 4][t % 4 * 8] = *(const uint4 *)(A + (size_t)(t / 4) * K + k + t % 4 * 8);
        *(uint4 *)&b[t / 8][t % 8 * 8] = *(const uint4 *)(B + (size_t)(k + t / 8) * N + t % 8 * 8);
        __syncthreads();
        if (by_hand) {
#pragma unroll
            for (int q = 0; q < 32; ++q) {
                float x[4], y[4];
                for (int i = 0; i < 4; ++i) x[i] = __half2float(a[ty * 4 + i][q]);
                float2 y0 = __half22float2(*(half2 *)&b[q][tx * 4]), y1 = __half22float2(*(half2 *)&b[q][tx * 4 + 2]);
                y[0] = y0.x, y[1] = y0.y, y[2] = y1.x, y[3] = y1.y;
                for (int i = 0; i < 4; ++i)
                    for (int j = 0; j < 4; ++j) sum[i][j] = fmaf(x[i], y[j], sum[i][j]);
            }
        } else {
            fragment<matrix_a, 16, 16, 16, half, row_major> fa;
            fragment<matrix_b, 16, 16, 16, half, row_major> fb;
#pragma unroll
            for (int q = 0; q < 32; q += 16) {
                load_matrix_sync(fa, &a[warp / 2 * 16][q], 40);
                for (int h = 0; h < 2; ++h) {
                    load_matrix_sync(fb, &b[q][warp % 2 * 32 + h * 16], 72);
                    mma_sync(acc[h], fa, fb, acc[h]);
                }
            }
        }
        __syncthreads();
    }
    if (by_hand) {
        for (int i = 0; i < 4; ++i) *(float4 *)(C + (size_t)(ty * 4 + i) * N + tx * 4) = {sum[i][0], sum[i][1], sum[i][2], sum[i][3]};
    } else {
        for (int h = 0; h < 2; ++h) store_matrix_sync(C + (size_t)(warp / 2 * 16) * N + warp % 2 * 32 + h * 16, acc[h], N, mem_row_major);
    }
}
PAIR(experts_of_half, "panel-of-eight") {
    const int experts = 8, tokens = 512, inner = 1024, outer = 2048;
    std::vector<half> values((size_t)experts * inner * outer);
    for (size_t i = 0; i < values.size(); ++i) values[i] = __float2half(((i * 7919) % 1000) * 1e-3f - 0.5f);
    half *weights = copied(values);
    values.resize((size_t)experts * tokens * inner);
    half *in = copied(values);
    float *out = buffer<float>((size_t)experts * tokens * outer);
    return [=] { LAUNCH(expert<ill>, dim3(outer / 64, tokens / 64, experts), 256, 0, in, weights, out, tokens, outer, inner); };
}

// ---------------------------------------------------------------------------------------------------------------------
// Healthy: dram-bound. Rows of 512 B of a table of 1 GB by a random index, a warp a row: whole sectors, each row at most a few times; DRAM is busy.
__global__ void fetched(const float4 *__restrict__ table, const unsigned *__restrict__ which, float4 *__restrict__ out, int rows) {
    int lane = threadIdx.x % 32, warps = gridDim.x * blockDim.x / 32;
#pragma unroll 4
    for (int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32; r < rows; r += warps) out[(size_t)r * 32 + lane] = table[(size_t)which[r] * 32 + lane];
}
CASE(passages, "passages-by-number") {
    const int table_rows = 2 << 20, rows = 2 << 20;
    float4 *table = (float4 *)buffer<float>((size_t)table_rows * 128), *out = (float4 *)buffer<float>((size_t)rows * 128);
    unsigned *which = buffer<unsigned>(rows, 0, table_rows);
    return [=] { LAUNCH(fetched, 132 * 8, 256, 0, table, which, out, rows); };
}

// Healthy: l2-bound. Bags of 32 words, rows of 128 B of a table of 20 MB in L2 by a random index: 1 M bags x 32 x 128 B = 4.3 GB from L2 (~0.8 ms); writes 134 MB, indices 134 MB.
__global__ void __launch_bounds__(256) bagged(const float *__restrict__ table, const unsigned *__restrict__ words, float *__restrict__ out, int bags) {
    int bag = (blockIdx.x * 256 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (bag >= bags) return;
    unsigned mine = words[(size_t)bag * 32 + lane];
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 32; ++k) sum += table[(size_t)__shfl_sync(~0u, mine, k) * 32 + lane];
    out[(size_t)bag * 32 + lane] = sum;
}
CASE(bags, "baskets-of-herbs") {
    const int rows = 160 << 10, count = 1 << 20;
    float *table = buffer<float>((size_t)rows * 32), *out = buffer<float>((size_t)count * 32);
    unsigned *words = buffer<unsigned>((size_t)count * 32, 0, rows);
    return [=] { LAUNCH(bagged, count / 8, 256, 0, table, words, out, count); };
}

// Healthy: compute-bound. Orbits of comets by four interleaved integrations a thread in FP64, which they need (a long time): the FP64 pipe is busy.
__global__ void __launch_bounds__(256) orbited(double *__restrict__ state, int n, int steps, double h) {
    int t = blockIdx.x * 256 + threadIdx.x;
    double x[4], v[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) x[k] = state[(size_t)k * n + t], v[k] = 0.1 * k;
#pragma unroll 2
    for (int s = 0; s < steps; ++s)
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            double q = x[k] * x[k], force = fma(q, fma(q, fma(q, -1. / 5040, 1. / 120), -1. / 6), 1.) * x[k];
            v[k] = fma(-h, force, v[k]);
            x[k] = fma(h, v[k], x[k]);
        }
#pragma unroll
    for (int k = 0; k < 4; ++k) state[(size_t)k * n + t] = x[k];
}
CASE(comets, "comets-of-long-ago") {
    const int n = 132 * 8 * 256;
    double *state = buffer<double>(4 * (size_t)n);
    return [=] { LAUNCH(orbited, n / 256, 256, 0, state, n, 1000, 1e-3); };
}

// Healthy: occupancy-enough. City-block distances between 4096 and 4096 descriptors of 256 floats, 8 x 8 a thread in registers (no product: no tensor cores): 16 warps an SM, the FP32 pipe is busy.
__global__ void __launch_bounds__(256, 2) city_blocks(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ D, int n, int width) {
    __shared__ __align__(16) float a[16][132], b[16][132];
    int t = threadIdx.x, tx = t % 16, ty = t / 16;
    float sum[8][8] = {};
    for (int k = 0; k < width; k += 16) {
        for (int q = t; q < 2048; q += 256) {
            int row = q % 128, column = q / 128; // descriptors lie by column
            a[column][row] = A[(size_t)(k + column) * n + blockIdx.y * 128 + row];
            b[column][row] = B[(size_t)(k + column) * n + blockIdx.x * 128 + row];
        }
        __syncthreads();
#pragma unroll
        for (int q = 0; q < 16; ++q) {
            float4 a0 = *(float4 *)&a[q][ty * 4], a1 = *(float4 *)&a[q][64 + ty * 4], b0 = *(float4 *)&b[q][tx * 4], b1 = *(float4 *)&b[q][64 + tx * 4];
            float x[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w}, y[8] = {b0.x, b0.y, b0.z, b0.w, b1.x, b1.y, b1.z, b1.w};
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) sum[i][j] += fabsf(x[i] - y[j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; j += 4) {
            size_t row = blockIdx.y * 128 + i / 4 * 64 + ty * 4 + i % 4;
            *(float4 *)&D[row * n + blockIdx.x * 128 + j * 16 + tx * 4] = {sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]};
        }
}
CASE(descriptors, "stamps-of-seals") {
    const int n = 4096, width = 256;
    float *a = buffer<float>((size_t)n * width), *b = buffer<float>((size_t)n * width, 1, 2), *d = buffer<float>((size_t)n * n);
    return [=] { LAUNCH(city_blocks, dim3(n / 128, n / 128), 256, 0, a, b, d, n, width); };
}

// Healthy: dram-bound. A step of FDTD in two dimensions, 4096 x 4096: three fields and the material, each once: 64 MB x (4 + 3) in two kernels.
__global__ void magnetic(const float *__restrict__ ez, float *__restrict__ hx, float *__restrict__ hy, int w, int h) {
    int x = blockIdx.x * 64 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;
    if (x >= w - 1 || y >= h - 1) return;
    size_t i = (size_t)y * w + x;
    float e = ez[i];
    hx[i] -= 0.5f * (ez[i + w] - e), hy[i] += 0.5f * (ez[i + 1] - e);
}
__global__ void electric(float *__restrict__ ez, const float *__restrict__ hx, const float *__restrict__ hy, const float *__restrict__ inverse, int w, int h) {
    int x = blockIdx.x * 64 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;
    if (x < 1 || y < 1 || x >= w || y >= h) return;
    size_t i = (size_t)y * w + x;
    ez[i] = fmaf(0.5f * inverse[i], hy[i] - hy[i - 1] - hx[i] + hx[i - w], ez[i]);
}
CASE(cavity, "microwave-oven") {
    const int w = 8192, h = 4096;
    size_t n = (size_t)w * h;
    float *ez = buffer<float>(n), *hx = buffer<float>(n, 0, 0), *hy = buffer<float>(n, 0, 0), *inverse = buffer<float>(n, 0.3, 1);
    return [=] {
        LAUNCH(magnetic, dim3(w / 64, h / 4), dim3(64, 4), 0, ez, hx, hy, w, h);
        LAUNCH(electric, dim3(w / 64, h / 4), dim3(64, 4), 0, ez, hx, hy, inverse, w, h);
    };
}

int main(int argc, char **argv) { return run_cases(argc, argv); }
