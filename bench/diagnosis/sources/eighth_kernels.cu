// An eighth set of kernels: one planted illness a case (or none); NAME.cured gives the same without it.
#include "harness.h"
#include <algorithm>
#include <cuda_bf16.h>
#include <cuda_pipeline.h>
#include <mma.h>

#define ILL_AND_CURED(id, name, make)                                                                                  \
    CASE(id##_ill, name) { return make<true>(); }                                                                      \
    CASE(id##_cured, name ".cured") { return make<false>(); }

__device__ inline float over_warp(float x) {
    for (int o = 16; o; o >>= 1) x += __shfl_xor_sync(~0u, x, o);
    return x;
}

// ---------------------------------------------------------------------------------------------------------------------
// uncoalesced-access. Spectrograms are normalised frame by frame (zero mean, unit variance), a frame of 512 bins a thread: the lanes of a warp are 2 KB apart.
// 256 Ki frames = 512 MB read twice and written. Ill: 3 x 4.2 M requests of 32 lines, ~32 cycles each / 132 SMs: 3 M cycles = 1.7 ms at the least; the twin
// has a warp a frame (in registers): 512 MB in, 512 MB out: 0.25 ms.
template <bool frame_a_thread> __global__ void whiten(const float *__restrict__ in, float *__restrict__ out, int frames) {
    constexpr int bins = 512;
    if (frame_a_thread) {
        int f = blockIdx.x * blockDim.x + threadIdx.x;
        if (f >= frames) return;
        const float *from = in + (size_t)f * bins;
        float *to = out + (size_t)f * bins;
        float sum = 0, square = 0;
        for (int b = 0; b < bins; ++b) sum += from[b], square = fmaf(from[b], from[b], square);
        float mean = sum / bins, scale = rsqrtf(square / bins - mean * mean + 1e-5f);
        for (int b = 0; b < bins; ++b) to[b] = (from[b] - mean) * scale;
    } else {
        int f = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
        if (f >= frames) return;
        float mine[bins / 32], sum = 0, square = 0;
        for (int k = 0; k < bins / 32; ++k) mine[k] = in[(size_t)f * bins + k * 32 + lane], sum += mine[k], square = fmaf(mine[k], mine[k], square);
        sum = over_warp(sum), square = over_warp(square);
        float mean = sum / bins, scale = rsqrtf(square / bins - mean * mean + 1e-5f);
        for (int k = 0; k < bins / 32; ++k) out[(size_t)f * bins + k * 32 + lane] = (mine[k] - mean) * scale;
    }
}
template <bool ill> Step bat_calls() {
    const int frames = 256 << 10;
    float *in = buffer<float>((size_t)frames * 512), *out = buffer<float>((size_t)frames * 512);
    return [=] { LAUNCH(whiten<ill>, ill ? frames / 256 : frames / 8, 256, 0, in, out, frames); };
}
ILL_AND_CURED(bat_calls, "bat-detector", bat_calls)

// ---------------------------------------------------------------------------------------------------------------------
// array-of-structures. A terminal's containers, 96 bytes each; a watch over reefers reads a temperature and a limit, in two different sectors: 64 B of each
// against 8. 16 M containers: 1 GB (with 96 B lines: up to 1.5) = 0.25 to 0.35 ms against 128 MB = 0.03 ms; four watches a step.
struct Container {
    int number, owner, row, tier, bay;
    float temperature, humidity, tare;
    float load[7], limit;
    int sealed, since, ship, port, spare[4];
};
struct FromRecords {
    const Container *all;
    __device__ float excess(int i) const { return all[i].temperature - all[i].limit; }
};
struct FromFields {
    const float *temperature, *limit;
    __device__ float excess(int i) const { return temperature[i] - limit[i]; }
};
template <class Source> __global__ void alarms(Source source, int n, float margin, float *total) {
    float mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += fmaxf(source.excess(i) - margin, 0.f);
    mine = over_warp(mine);
    if (threadIdx.x % 32 == 0) atomicAdd(total + blockIdx.x % 64, mine);
}
const int reefers = 16 << 20;
CASE(reefers_ill, "reefers-ashore") {
    FromRecords source{(Container *)buffer<float>((size_t)reefers * 24)};
    float *total = buffer<float>(64);
    return [=] {
        for (int k = 0; k < 4; ++k) LAUNCH(alarms, 132 * 8, 256, 0, source, reefers, 0.1f * k, total);
    };
}
CASE(reefers_cured, "reefers-ashore.cured") {
    FromFields source{buffer<float>(reefers), buffer<float>(reefers)};
    float *total = buffer<float>(64);
    return [=] {
        for (int k = 0; k < 4; ++k) LAUNCH(alarms, 132 * 8, 256, 0, source, reefers, 0.1f * k, total);
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// random-gather. Toll passages look up their vehicle's tariff in a table of 64 M (256 MB). As they came (random): 32 M sectors of 32 B (1 GB at a random
// pattern's rate, 0.4 ms and more) and 128 MB of keys; the twin has the same passages sorted by vehicle: 256 + 128 MB in order, 0.1 ms.
__global__ void order_of(uint32_t *key, uint32_t n, bool shuffled) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint32_t j = i;
    if (shuffled)
        for (int r = 0; r < 3; ++r) j = (j * 0x9e3779b1u + 0x7f4a7c15u) & (n - 1), j ^= j >> 13;
    key[i] = 2 * j + (hashed(j) & 1);
}
__global__ void charge(const uint4 *__restrict__ key, const float *__restrict__ tariff, float *__restrict__ total, int quarters) {
    float mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < quarters; i += gridDim.x * blockDim.x) {
        uint4 k = key[i];
        mine += tariff[k.x] + tariff[k.y] + tariff[k.z] + tariff[k.w];
    }
    mine = over_warp(mine);
    if (threadIdx.x % 32 == 0) atomicAdd(total + blockIdx.x % 256, mine);
}
template <bool ill> Step tolls() {
    const uint32_t n = 32 << 20;
    uint32_t *key = buffer<uint32_t>(n);
    float *tariff = buffer<float>(2ull * n), *total = buffer<float>(256);
    order_of<<<n / 256, 256>>>(key, n, ill);
    return [=] {
        for (int k = 0; k < 2; ++k) LAUNCH(charge, 132 * 8, 256, 0, (const uint4 *)key, tariff, total, (int)(n / 4));
    };
}
ILL_AND_CURED(tolls, "toll-bridge", tolls)

// ---------------------------------------------------------------------------------------------------------------------
// narrow-access. Parity of four disks, a byte a thread: 256 M threads with four loads of a byte: 32 B a request; 64 warps x 4 x 32 B = 8 KB in flight a SM
// (1.5 TB/s at best) and 42 M requests; the twin does 16 bytes a thread: 1.28 GB at DRAM's rate, 0.32 ms.
template <class Word> __device__ inline Word parity(Word a, Word b, Word c, Word d) { return a ^ b ^ c ^ d; }
template <> __device__ inline uint4 parity(uint4 a, uint4 b, uint4 c, uint4 d) {
    return make_uint4(a.x ^ b.x ^ c.x ^ d.x, a.y ^ b.y ^ c.y ^ d.y, a.z ^ b.z ^ c.z ^ d.z, a.w ^ b.w ^ c.w ^ d.w);
}
template <class Word> __global__ void raid(const Word *a, const Word *b, const Word *c, const Word *d, Word *p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] = parity(a[i], b[i], c[i], d[i]);
}
template <bool ill> Step disks() {
    using Word = std::conditional_t<ill, unsigned char, uint4>;
    const int bytes = 256 << 20, n = bytes / sizeof(Word);
    Word *disk[5];
    for (auto &d : disk) d = (Word *)buffer<uint32_t>(bytes / 4, 0, 4e9);
    Word *a = disk[0], *b = disk[1], *c = disk[2], *d = disk[3], *p = disk[4];
    return [=] { LAUNCH(raid<Word>, n / 256, 256, 0, a, b, c, d, p, n); };
}
ILL_AND_CURED(disks, "parity-of-disks", disks)

// ---------------------------------------------------------------------------------------------------------------------
// bank-conflicts. Edit distance of 32-letter barcodes to their best match: each thread has a row of 33 distances in shared memory (32 used): [thread][column] with
// 32 columns: all lanes meet in one bank; the twin has [column][thread]. 1024 cells a pair, 2 accesses each: 64 cycles of LSU a warp's cell against 2 (and ~10 ALU
// instructions: 5 cycles). 192 Ki pairs: 6144 warps x 1024 x 64 / 132 = 3 M cycles = 1.7 ms.
template <int threads, int step, int column> __global__ void __launch_bounds__(threads) edits(const uint64_t *__restrict__ seen, const uint64_t *__restrict__ known, int *best, int n) {
    __shared__ int all[32 * threads];
    int *row = all + threadIdx.x * step;
    int i = blockIdx.x * threads + threadIdx.x;
    if (i >= n) return;
    uint64_t a = seen[i], b = known[i];
    for (int c = 0; c < 32; ++c) row[c * column] = c + 1;
    int left = 0;
    for (int r = 0; r < 32; ++r) {
        int letter = (int)(a >> (2 * r)) & 3, corner = r;
        left = r + 1;
        uint64_t rest = b;
#pragma unroll 4
        for (int c = 0; c < 32; ++c, rest >>= 2) {
            int up = row[c * column];
            int cell = min(min(up, left) + 1, corner + (((int)rest & 3) != letter));
            row[c * column] = left = cell;
            corner = up;
        }
    }
    best[i] = left;
}
template <bool ill> Step barcodes() {
    const int n = 192 << 10;
    uint64_t *seen = (uint64_t *)buffer<uint32_t>(2 * n, 0, 4e9), *known = (uint64_t *)buffer<uint32_t>(2 * n, 1e6, 4e9);
    int *best = buffer<int>(n);
    return [=] { LAUNCH((edits<128, ill ? 32 : 1, ill ? 1 : 128>), n / 128, 128, 0, seen, known, best, n); };
}
ILL_AND_CURED(barcodes, "smudged-barcodes", barcodes)

// ---------------------------------------------------------------------------------------------------------------------
// register-spills. 48 coupled species a thread on a ring, 200 explicit steps; launch bounds leave 32 registers (ill): ~48 live floats are spilled, so each of the ~150
// FMAs of a step waits for local loads and stores of 128 B a warp (~1 cycle of LSU each against 1/4); the twin has 128 threads a block and as many registers as it wants.
template <int block, int blocks> __global__ void __launch_bounds__(block, blocks) ferment(float *species, int n, float dt, int steps) {
    int i = blockIdx.x * block + threadIdx.x;
    constexpr int S = 48;
    float y[S];
#pragma unroll
    for (int s = 0; s < S; ++s) y[s] = species[(size_t)s * n + i];
#pragma unroll 1
    for (int t = 0; t < steps; ++t) {
        float first = y[0], before = y[S - 1];
#pragma unroll
        for (int s = 0; s < S; ++s) {
            float next = s + 1 < S ? y[s + 1] : first, me = y[s];
            y[s] = fmaf(dt, fmaf(before, 0.3f + 0.01f * s, fmaf(next, 0.2f, -0.5f * me * me)), me);
            before = me;
        }
    }
#pragma unroll
    for (int s = 0; s < S; ++s) species[(size_t)s * n + i] = y[s];
}
template <bool ill> Step vats() {
    const int n = 132 * 2048 * 2;
    float *species = buffer<float>((size_t)n * 48);
    return [=] {
        if (ill) LAUNCH((ferment<1024, 2>), n / 1024, 1024, 0, species, n, 1e-3f, 200);
        else LAUNCH((ferment<128, 1>), n / 128, 128, 0, species, n, 1e-3f, 200);
    };
}
ILL_AND_CURED(vats, "fermenting-vats", vats)

// ---------------------------------------------------------------------------------------------------------------------
// local-array-indexing. Charge of proteins along a titration: each thread has its own 24 charges (of residues at its pH) and adds them along its own sequence: an array
// of the thread indexed by the letters: local memory, 24 lines a request (~20 cycles of L1); the twin has the array in shared memory, a column a thread (no conflict).
// 256 Ki threads x 512 letters: 4.2 M requests x 20 / 132 = 0.64 M cycles = 0.36 ms at the least; sequences: 128 MB = 0.03 ms.
template <bool local> __global__ void __launch_bounds__(128) titrate(const uint32_t *__restrict__ letters, int words, int n, float *charge) {
    __shared__ float columns[local ? 1 : 24 * 128];
    float mine[24];
    int i = blockIdx.x * 128 + threadIdx.x;
    float ph = 3.f + 8.f * (i % 1000) * 1e-3f;
#pragma unroll
    for (int a = 0; a < 24; ++a) {
        float q = fmaf(ph, 0.01f * (a % 7) - 0.03f, 0.2f * (a % 5) - 0.4f);
        if (local) mine[a] = q;
        else columns[a * 128 + threadIdx.x] = q;
    }
    float sum = 0, turn = 0;
    for (int w = 0; w < words; ++w) {
        uint32_t four = letters[(size_t)w * n + i];
#pragma unroll
        for (int k = 0; k < 4; ++k, four >>= 8) {
            int a = four & 31;
            a = a < 24 ? a : a - 12;
            float q = local ? mine[a] : columns[a * 128 + threadIdx.x];
            sum += q, turn = fmaf(turn, 0.9f, q);
        }
    }
    charge[i] = sum + turn;
}
template <bool ill> Step proteins() {
    const int n = 256 << 10, words = 128;
    uint32_t *letters = buffer<uint32_t>((size_t)n * words, 0, 4294967295.0);
    float *charge = buffer<float>(n);
    return [=] {
        for (int k = 0; k < 2; ++k) LAUNCH(titrate<ill>, n / 128, 128, 0, letters, words, n, charge);
    };
}
ILL_AND_CURED(proteins, "isoelectric-points", proteins)

// ---------------------------------------------------------------------------------------------------------------------
// divergence. Photons in a cloud scatter a different number of times: most 8 to 23, one of 16 scatters 384 times: a warp lasts as long as its longest: ~390 against a
// mean of ~38. 4 M photons: 131 Ki warps x 390 x ~14 / 4 / 132 = 1.3 M cycles; the twin has the photons in order of their number: 0.15 M.
__global__ void numbers(int *scatters, int n, bool in_order) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool trapped = in_order ? i < n / 16 : hashed(i * 7 + 1) % 16 == 0;
    scatters[i] = trapped ? 384 : 8 + (in_order ? (int)((i - n / 16) / (n / 15)) : (int)(hashed(i) % 16));
}
__global__ void cloud(const int *__restrict__ scatters, float4 *exits, float g) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, many = scatters[i];
    uint32_t seed = hashed(many * 977 + 5);
    float x = 0, z = 0, c = 1, s = 0, weight = 1;
    for (int k = 0; k < many; ++k) {
        seed = seed * 1664525u + 1013904223u;
        float u = (seed >> 8) * 5.9604645e-8f, turn = g * (u - 0.5f), c2 = fmaf(-s, turn, c), s2 = fmaf(c, turn, s);
        float norm = fmaf(-0.5f, fmaf(c2, c2, s2 * s2), 1.5f);
        c = c2 * norm, s = s2 * norm;
        x = fmaf(u, s, x), z = fmaf(u, c, z), weight *= 0.9995f;
    }
    exits[i] = make_float4(x, z, c, weight);
}
template <bool ill> Step clouds() {
    const int n = 4 << 20;
    int *scatters = buffer<int>(n);
    float4 *exits = (float4 *)buffer<float>(4ull * n);
    numbers<<<n / 256, 256>>>(scatters, n, !ill);
    return [=] { LAUNCH(cloud, n / 256, 256, 0, scatters, exits, 0.4f); };
}
ILL_AND_CURED(clouds, "photons-in-cumulus", clouds)

// ---------------------------------------------------------------------------------------------------------------------
// fp64-by-accident. Velocity of vortex filaments on each other, all pairs; the regularisation has constants without f: three conversions (16 a cycle and SM) and a few
// FP64 instructions a pair. 33 Ki vortices: 1.1 G pairs: 4 / 16 x 1.1 G / 132 = 2.2 M cycles at the least, against ~17 FP32 instructions a pair: 1.1 M.
__device__ inline float regular(float r2, bool) { return r2 * 1.01 + 0.0025; }
__device__ inline float regular(float r2, int) { return r2 * 1.01f + 0.0025f; }
__device__ inline float strength(float gamma, float inverse, bool) { return 0.0795774715 * gamma * inverse; }
__device__ inline float strength(float gamma, float inverse, int) { return 0.0795774715f * gamma * inverse; }
template <class Kind> __global__ void __launch_bounds__(256) induced(const float4 *__restrict__ vortex, float4 *velocity, int n) {
    __shared__ float4 tile[256];
    float4 me = vortex[blockIdx.x * 256 + threadIdx.x];
    float u = 0, v = 0, w = 0;
    int quarter = n / 4, begin = blockIdx.y * quarter;
    for (int at = begin; at < begin + quarter; at += 256) {
        __syncthreads();
        tile[threadIdx.x] = vortex[at + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < 256; ++k) {
            float4 o = tile[k];
            float dx = me.x - o.x, dy = me.y - o.y, dz = me.z - o.z;
            float inverse = rsqrtf(regular(fmaf(dx, dx, fmaf(dy, dy, dz * dz)), Kind()));
            float s = strength(o.w, inverse * inverse * inverse, Kind());
            u = fmaf(s, dy, u), v = fmaf(-s, dx, v), w = fmaf(s, dz, w);
        }
    }
    velocity[(size_t)blockIdx.y * n + blockIdx.x * 256 + threadIdx.x] = make_float4(u, v, w, 0);
}
template <bool ill> Step vortices() {
    const int n = 132 * 256;
    float4 *vortex = (float4 *)buffer<float>(4 * n), *velocity = (float4 *)buffer<float>(16 * n);
    return [=] { LAUNCH((induced<std::conditional_t<ill, bool, int>>), dim3(n / 256, 4), 256, 0, vortex, velocity, n); };
}
ILL_AND_CURED(vortices, "smoke-rings", vortices)

// ---------------------------------------------------------------------------------------------------------------------
// special-functions. Density of people around 2048 towers on a map of 1024 x 1024: a Gaussian of each pair of pixel and tower, by ex2.approx: 2.1 G of them / (16 x 132)
// = 1 M cycles = 0.57 ms; the twin takes the product of two factors that a block has made once (ex and ey of its tile): LDS and an FMA.
__device__ inline float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
template <bool each_pair> __global__ void __launch_bounds__(256) crowd(const float2 *__restrict__ tower, int towers, float *density, float sharp) {
    constexpr int chunk = 64;
    __shared__ float ex[chunk][32];
    __shared__ float4 ey[chunk][8];
    __shared__ float2 place[chunk];
    int tx = threadIdx.x % 32, ty = threadIdx.x / 32;
    float x = (blockIdx.x * 32 + tx) * (1.f / 1024), y0 = (blockIdx.y * 32 + ty * 4) * (1.f / 1024);
    float sum[4] = {};
    for (int at = 0; at < towers; at += chunk) {
        __syncthreads();
        if (threadIdx.x < chunk) place[threadIdx.x] = tower[at + threadIdx.x];
        __syncthreads();
        if (!each_pair) {
            for (int k = ty; k < chunk; k += 8) {
                float dx = x - place[k].x, dy = (blockIdx.y * 32 + tx) * (1.f / 1024) - place[k].y;
                ex[k][tx] = exp2_fast(-sharp * dx * dx);
                ((float *)ey[k])[tx] = exp2_fast(-sharp * dy * dy);
            }
            __syncthreads();
        }
#pragma unroll 8
        for (int k = 0; k < chunk; ++k) {
            if (each_pair) {
                float2 p = place[k];
                float dx = x - p.x, d = -sharp * dx * dx;
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    float dy = (y0 + j * (1.f / 1024)) - p.y;
                    sum[j] += exp2_fast(fmaf(-sharp * dy, dy, d));
                }
            } else {
                float a = ex[k][tx];
                float4 b = ey[k][ty];
                sum[0] = fmaf(a, b.x, sum[0]), sum[1] = fmaf(a, b.y, sum[1]), sum[2] = fmaf(a, b.z, sum[2]), sum[3] = fmaf(a, b.w, sum[3]);
            }
        }
    }
    for (int j = 0; j < 4; ++j) density[(blockIdx.y * 32 + ty * 4 + j) * 1024 + blockIdx.x * 32 + tx] = sum[j];
}
template <bool ill> Step towers() {
    float2 *tower = (float2 *)buffer<float>(2 * 2048);
    float *density = buffer<float>(1 << 20);
    return [=] { LAUNCH(crowd<ill>, dim3(32, 32), 256, 0, tower, 2048, density, 40.f); };
}
ILL_AND_CURED(towers, "phones-near-towers", towers)

// ---------------------------------------------------------------------------------------------------------------------
// integer-division. Windows of 7 x 7 of an image of 112 x 112 x 96, shifted by 3: each element finds its place by 6 divisions with remainders and 2 remainders more, by
// sizes that are arguments: ~170 instructions; the twin has the sizes as template arguments (~40). 77 M elements (616 MB: 0.15 ms): 2.4 M warps x 200 / 132 / ~2.2 = 0.9 ms.
struct Sizes {
    int high, wide, deep, window, shift;
};
template <class Get> __device__ inline void moved(const float *__restrict__ in, float *__restrict__ out, int total, Get get) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= total) return;
    int across = get.wide() / get.window(), down = get.high() / get.window();
    int c = i % get.deep(), rest = i / get.deep();
    int x = rest % get.window();
    rest /= get.window();
    int y = rest % get.window();
    rest /= get.window();
    int wx = rest % across;
    rest /= across;
    int wy = rest % down, picture = rest / down;
    int row = (wy * get.window() + y + get.shift()) % get.high(), column = (wx * get.window() + x + get.shift()) % get.wide();
    out[i] = in[((picture * get.high() + row) * get.wide() + column) * get.deep() + c];
}
struct AtRunTime {
    Sizes s;
    __device__ int high() const { return s.high; }
    __device__ int wide() const { return s.wide; }
    __device__ int deep() const { return s.deep; }
    __device__ int window() const { return s.window; }
    __device__ int shift() const { return s.shift; }
};
template <int H, int W, int C, int N, int S> struct Fixed {
    __device__ constexpr int high() const { return H; }
    __device__ constexpr int wide() const { return W; }
    __device__ constexpr int deep() const { return C; }
    __device__ constexpr int window() const { return N; }
    __device__ constexpr int shift() const { return S; }
};
__global__ void to_windows(const float *in, float *out, int total, Sizes s) { moved(in, out, total, AtRunTime{s}); }
template <int H, int W, int C, int N, int S> __global__ void to_windows_of(const float *in, float *out, int total) { moved(in, out, total, Fixed<H, W, C, N, S>()); }
template <bool ill> Step windows() {
    const int total = 64 * 112 * 112 * 96;
    float *in = buffer<float>(total), *out = buffer<float>(total);
    return [=] {
        if (ill) LAUNCH(to_windows, total / 256, 256, 0, in, out, total, Sizes{112, 112, 96, 7, 3});
        else LAUNCH((to_windows_of<112, 112, 96, 7, 3>), total / 256, 256, 0, in, out, total);
    };
}
ILL_AND_CURED(windows, "windows-of-orchards", windows)

// ---------------------------------------------------------------------------------------------------------------------
// unfused-multiply-add. Heights of a geoid from four FP64 polynomials of degree 63 (double by need: millimetres in an Earth's radius), rounded after each multiplication:
// 8 M points x 4 x 63 x 2 FP64 instructions / (64 x 132) = 0.5 M cycles a launch of 8 M against half; 3 launches: 0.85 ms and 0.43.
__constant__ double geoid[4][64];
struct Strict {
    static __device__ double next(double a, double x, double c) { return __dadd_rn(__dmul_rn(a, x), c); }
};
struct Loose {
    static __device__ double next(double a, double x, double c) { return fma(a, x, c); }
};
template <class Rounding> __global__ void heights(const double *__restrict__ latitude, double *__restrict__ height, int n, double turn) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = latitude[i] * 0.9, a = turn, b = 1, c = 1, d = 1;
#pragma unroll 16
    for (int k = 0; k < 63; ++k) {
        a = Rounding::next(a, x, geoid[0][k]), b = Rounding::next(b, x, geoid[1][k]);
        c = Rounding::next(c, x, geoid[2][k]), d = Rounding::next(d, x, geoid[3][k]);
    }
    height[i] = (a + b) + (c + d);
}
template <bool ill> Step heights_of() {
    const int n = 8 << 20;
    double *latitude = buffer<double>(n), *height = buffer<double>(n);
    return [=] {
        for (int k = 0; k < 3; ++k) LAUNCH((heights<std::conditional_t<ill, Strict, Loose>>), n / 256, 256, 0, latitude, height, n, 0.3 * k);
    };
}
ILL_AND_CURED(heights_of, "heights-of-the-geoid", heights_of)

// ---------------------------------------------------------------------------------------------------------------------
// contended-atomics. The best pose of each of 16 ligands among 512 Ki poses: each thread does a 64-bit atomicMin on its ligand's word: 8 M on 16 addresses, and at a time
// mostly on one: ~1 a cycle of a slice: 4.7 ms; the twin reduces over the block first (32 Ki atomics). Scores: 96 MB = 0.02 ms.
__device__ inline unsigned long long least(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
template <bool each> __global__ void best_pose(const float *__restrict__ energy, const float *__restrict__ clash, const float *__restrict__ strain, unsigned long long *best, int poses) {
    int ligand = blockIdx.y, i = ligand * poses + blockIdx.x * 256 + threadIdx.x;
    float score = fmaf(2.f, clash[i], fmaf(0.3f, strain[i], energy[i])) + 1.f;
    unsigned long long mine = (unsigned long long)__float_as_uint(score) << 32 | (unsigned)i;
    if (each) {
        atomicMin(best + ligand, mine);
    } else {
        __shared__ unsigned long long part[8];
        for (int o = 16; o; o /= 2) mine = least(mine, __shfl_xor_sync(~0u, mine, o));
        if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = mine;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int w = 1; w < 8; ++w) mine = least(mine, part[w]);
            atomicMin(best + ligand, mine);
        }
    }
}
template <bool ill> Step docking() {
    const int poses = 512 << 10, n = 16 * poses;
    float *energy = buffer<float>(n), *clash = buffer<float>(n), *strain = buffer<float>(n);
    unsigned long long *best = (unsigned long long *)buffer<uint32_t>(32);
    return [=] {
        CHECK(cudaMemsetAsync(best, 255, 16 * 8));
        LAUNCH(best_pose<ill>, dim3(poses / 256, 16), 256, 0, energy, clash, strain, best, poses);
    };
}
ILL_AND_CURED(docking, "poses-of-ligands", docking)

// ---------------------------------------------------------------------------------------------------------------------
// barriers. Strains of a virus in competition: 32 Ki hosts with shares of 1024 strains each, 16 generations; a block of 1024 threads a host, and the sum of each generation by a tree with a barrier a
// level: 12 barriers of ~90 cycles for few instructions, two blocks a SM: 32 Ki x 16 x ~550 / 132 = 2.2 M cycles = 1.3 ms. The twin has a warp a host (32 shares a lane in registers, shuffles), no barriers: ~35
// cycles a host and generation, 256 MB: 0.1 ms.
__global__ void __launch_bounds__(1024, 2) compete_block(const float *__restrict__ fitness, float *share, int generations) {
    __shared__ float sum[1024];
    int t = threadIdx.x;
    float x = share[blockIdx.x * 1024 + t], a = fitness[t];
    for (int g = 0; g < generations; ++g) {
        sum[t] = x *= a;
        __syncthreads();
        for (int s = 512; s; s /= 2) {
            if (t < s) sum[t] += sum[t + s];
            __syncthreads();
        }
        x = __fdividef(x, sum[0]);
        __syncthreads();
    }
    share[blockIdx.x * 1024 + t] = x;
}
__global__ void __launch_bounds__(128) compete_warp(const float *__restrict__ fitness, float *share, int generations) {
    int lane = threadIdx.x % 32;
    float *mine = share + (size_t)(blockIdx.x * 4 + threadIdx.x / 32) * 1024 + lane, x[32], a[32];
#pragma unroll
    for (int k = 0; k < 32; ++k) x[k] = mine[k * 32], a[k] = fitness[k * 32 + lane];
    for (int g = 0; g < generations; ++g) {
        float sum[4] = {};
#pragma unroll
        for (int k = 0; k < 32; ++k) x[k] *= a[k], sum[k % 4] += x[k];
        float scale = __fdividef(1.f, over_warp((sum[0] + sum[1]) + (sum[2] + sum[3])));
#pragma unroll
        for (int k = 0; k < 32; ++k) x[k] *= scale;
    }
#pragma unroll
    for (int k = 0; k < 32; ++k) mine[k * 32] = x[k];
}
template <bool ill> Step strains() {
    const int hosts = 32 << 10;
    float *share = buffer<float>((size_t)hosts * 1024, 0.5, 1.0), *fitness = buffer<float>(1024, 0.9, 1.1);
    return [=] {
        if (ill) LAUNCH(compete_block, hosts, 1024, 0, fitness, share, 16);
        else LAUNCH(compete_warp, hosts / 4, 128, 0, fitness, share, 16);
    };
}
ILL_AND_CURED(strains, "strains-in-competition", strains)

// ---------------------------------------------------------------------------------------------------------------------
// tail-wave. Rolling of a ship's hull in 268 sea states x 1024 headings: a block of 1024 threads a sea state, two a SM at most, and either is enough to keep the FP32 units busy:
// 264 blocks, then 4: three rounds of T for 2.03 T of work. The twin shares the same responses out in sixteenths over 132 blocks: 33 / 16 = 2.06 T.
__device__ inline float4 rolled(int sea, int heading, int part, int steps) {
    float w = 0.3f + 0.001f * sea, h = 0.006f * heading, a[4], v[4];
    for (int m = 0; m < 4; ++m) a[m] = 0.1f * m + h + 0.01f * part, v[m] = 0;
    float force = 1.f;
#pragma unroll 2
    for (int t = 0; t < steps; ++t) {
        force = fmaf(-w * 0.01f, force, 0.99f);
#pragma unroll
        for (int m = 0; m < 4; ++m) {
            float stiff = fmaf(a[m] * a[m], -0.16f, 1.f + 0.1f * m);
            v[m] = fmaf(0.01f, fmaf(-stiff, a[m], fmaf(-0.05f, v[m], force * h)), v[m]);
            a[m] = fmaf(0.01f, v[m], a[m]);
        }
    }
    return make_float4(a[0], a[1], a[2], a[3]);
}
const int seas = 268, parts = 16;
__global__ void __launch_bounds__(1024) sea_state(float4 *roll, int steps) {
    for (int part = 0; part < parts; ++part) roll[(blockIdx.x * parts + part) * 1024 + threadIdx.x] = rolled(blockIdx.x, threadIdx.x, part, steps);
}
__global__ void __launch_bounds__(1024) sea_parts(float4 *roll, int steps) {
    for (int unit = blockIdx.x; unit < seas * parts; unit += gridDim.x) roll[unit * 1024 + threadIdx.x] = rolled(unit / parts, threadIdx.x, unit % parts, steps);
}
template <bool ill> Step hulls() {
    float4 *roll = (float4 *)buffer<float>(4ull * seas * parts * 1024);
    return [=] {
        if (ill) LAUNCH(sea_state, seas, 1024, 0, roll, 200);
        else LAUNCH(sea_parts, 132, 1024, 0, roll, 200);
    };
}
ILL_AND_CURED(hulls, "hull-in-a-swell", hulls)

// ---------------------------------------------------------------------------------------------------------------------
// too-few-blocks. Decoding a token: 16 heads of 128, each with 64 Ki cached keys and values in bfloat16 (537 MB): a block of 512 threads a head: 16 of 132 SMs, ~70 GB/s
// each: 0.5 ms and more; the twin has 33 blocks a head, and a small kernel that joins them: 0.13 ms.
struct Partial {
    float top, sum;
    float value[128];
};
__device__ inline float2 pair_of(uint32_t word) { return __bfloat1622float2(*(__nv_bfloat162 *)&word); }
// A quarter-warp of 16 lanes has a token: 8 of the 128 numbers a lane (16 bytes).
__global__ void __launch_bounds__(512) decode(const uint4 *__restrict__ keys, const uint4 *__restrict__ values, const float *__restrict__ query, Partial *partial, int tokens) {
    __shared__ float top_of[32], sum_of[32], value_of[32][128];
    int head = blockIdx.x, lane = threadIdx.x % 16, group = threadIdx.x / 16;
    int each = (tokens + gridDim.y - 1) / gridDim.y, begin = blockIdx.y * each, end = min(tokens, begin + each);
    float q[8], acc[8] = {}, top = -1e30f, sum = 0;
    for (int k = 0; k < 8; ++k) q[k] = query[head * 128 + lane * 8 + k];
    const uint4 *key = keys + (size_t)head * tokens * 16 + lane, *value = values + (size_t)head * tokens * 16 + lane;
    for (int t = begin; t < end; t += 128) {
        uint4 kk[4], vv[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            int at = min(t + j * 32 + group, end - 1);
            kk[j] = key[(size_t)at * 16], vv[j] = value[(size_t)at * 16];
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            float2 a = pair_of(kk[j].x), b = pair_of(kk[j].y), c = pair_of(kk[j].z), d = pair_of(kk[j].w);
            float s = q[0] * a.x + q[1] * a.y + q[2] * b.x + q[3] * b.y + q[4] * c.x + q[5] * c.y + q[6] * d.x + q[7] * d.y;
            for (int o = 8; o; o /= 2) s += __shfl_xor_sync(~0u, s, o);
            if (t + j * 32 + group >= end) s = -1e30f;
            float higher = fmaxf(top, s), old = __expf(top - higher), p = __expf(s - higher);
            a = pair_of(vv[j].x), b = pair_of(vv[j].y), c = pair_of(vv[j].z), d = pair_of(vv[j].w);
            float v[8] = {a.x, a.y, b.x, b.y, c.x, c.y, d.x, d.y};
            for (int k = 0; k < 8; ++k) acc[k] = fmaf(acc[k], old, p * v[k]);
            sum = fmaf(sum, old, p), top = higher;
        }
    }
    if (lane == 0) top_of[group] = top, sum_of[group] = sum;
    for (int k = 0; k < 8; ++k) value_of[group][lane * 8 + k] = acc[k];
    __syncthreads();
    if (threadIdx.x < 128) {
        float most = -1e30f, all = 0, v = 0;
        for (int g = 0; g < 32; ++g) most = fmaxf(most, top_of[g]);
        for (int g = 0; g < 32; ++g) {
            float w = __expf(top_of[g] - most);
            all = fmaf(sum_of[g], w, all), v = fmaf(value_of[g][threadIdx.x], w, v);
        }
        Partial &mine = partial[head * gridDim.y + blockIdx.y];
        mine.top = most, mine.sum = all, mine.value[threadIdx.x] = v;
    }
}
__global__ void joined(const Partial *partial, int splits, float *out) {
    const Partial *mine = partial + blockIdx.x * splits;
    float most = -1e30f, all = 0, v = 0;
    for (int s = 0; s < splits; ++s) most = fmaxf(most, mine[s].top);
    for (int s = 0; s < splits; ++s) {
        float w = __expf(mine[s].top - most);
        all = fmaf(mine[s].sum, w, all), v = fmaf(mine[s].value[threadIdx.x], w, v);
    }
    out[blockIdx.x * 128 + threadIdx.x] = v / all;
}
__global__ void near_one(uint32_t *words, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) words[i] = (hashed((uint32_t)i) & 0x807f807fu) | 0x3e003e00u;
}
template <bool ill> Step next_word() {
    const int tokens = 64 << 10, heads = 16, splits = ill ? 1 : 33;
    size_t words = (size_t)heads * tokens * 64;
    uint32_t *keys = buffer<uint32_t>(words), *values = buffer<uint32_t>(words);
    near_one<<<1024, 256>>>(keys, words);
    near_one<<<1024, 256>>>(values, words);
    float *query = buffer<float>(heads * 128, -0.1, 0.1), *out = buffer<float>(heads * 128);
    Partial *partial = (Partial *)buffer<float>(heads * 33 * 130);
    return [=] {
        LAUNCH(decode, dim3(heads, splits), 512, 0, (const uint4 *)keys, (const uint4 *)values, query, partial, tokens);
        LAUNCH(joined, heads, 128, 0, partial, splits, out);
    };
}
ILL_AND_CURED(next_word, "long-novel", next_word)

// ---------------------------------------------------------------------------------------------------------------------
// unequal-blocks. Differences between all pairs of 33 Ki genomes' sketches (four words each): block b compares its 256 genomes with all before them: work grows with b, and all 132
// blocks are resident at once: the last takes twice the mean. The twin's block takes half of a part of the beginning and half of one of the end.
__device__ inline int differing(uint4 a, uint4 b) { return __popc(a.x ^ b.x) + __popc(a.y ^ b.y) + __popc(a.z ^ b.z) + __popc(a.w ^ b.w); }
template <int rows> __device__ inline void compare_rows(const uint4 *__restrict__ sketch, int part, int2 *nearest, uint4 *tile) {
    int i = part * rows + threadIdx.x % rows, slices = 1024 / rows, slice = threadIdx.x / rows;
    uint4 me = sketch[i];
    int best = 1000, at = -1;
    for (int begin = 0; begin < (part + 1) * rows; begin += 1024) {
        __syncthreads();
        tile[threadIdx.x] = sketch[begin + threadIdx.x];
        __syncthreads();
#pragma unroll 4
        for (int k = slice * rows; k < (slice + 1) * rows; ++k) {
            int d = differing(me, tile[k]);
            if (begin + k < i && d < best) best = d, at = begin + k;
        }
    }
    (void)slices;
    nearest[i * 8 + slice] = make_int2(best, at);
}
__global__ void __launch_bounds__(1024) lineage(const uint4 *sketch, int2 *nearest) {
    __shared__ uint4 tile[1024];
    compare_rows<256>(sketch, blockIdx.x, nearest, tile);
}
__global__ void __launch_bounds__(1024) lineage_folded(const uint4 *sketch, int2 *nearest) {
    __shared__ uint4 tile[1024];
    compare_rows<128>(sketch, blockIdx.x, nearest, tile);
    compare_rows<128>(sketch, 2 * gridDim.x - 1 - blockIdx.x, nearest, tile);
}
template <bool ill> Step lineages() {
    const int n = 132 * 256;
    uint4 *sketch = (uint4 *)buffer<uint32_t>(4 * n, 0, 4e9);
    int2 *nearest = (int2 *)buffer<int>(16 * n);
    return [=] {
        if (ill) LAUNCH(lineage, 132, 1024, 0, sketch, nearest);
        else LAUNCH(lineage_folded, 132, 1024, 0, sketch, nearest);
    };
}
ILL_AND_CURED(lineages, "family-of-viruses", lineages)

// ---------------------------------------------------------------------------------------------------------------------
// occupancy-registers. Sunlight through a canopy at 3072 wavelengths: a warp follows a beam from cell to cell (bough, branch, twig and leaf: four reads a hop, each address from the one before, in a
// table of 16 MB that L2 holds: ~1100 cycles) with 96 wavelengths a lane in registers: ~128: 16 warps a SM, 4 x 120 instructions a hop and scheduler. The twin follows all beams first (few registers,
// 64 warps a SM: a quarter of the wait) and keeps each hop's four bytes; then a second kernel has the wavelengths (4 x 110 instructions, no waits).
__device__ constexpr float glow(int k) { return 0.002f + 0.001f * (k * 29 % 31); }
__device__ inline float hop(const uint2 *__restrict__ cells, uint32_t mask, int h, uint32_t &at) {
    uint2 bough = __ldg(cells + at), branch = __ldg(cells + ((bough.x ^ h) & mask));
    uint2 twig = __ldg(cells + ((branch.x + bough.y) & mask)), leaf = __ldg(cells + ((twig.x ^ branch.y) & mask));
    at = (leaf.x + h) & mask;
    return (leaf.y & 1023) * 7e-5f;
}
__device__ inline void absorbed(float (&colour)[96], float through) {
#pragma unroll
    for (int k = 0; k < 96; ++k) colour[k] = fmaf(colour[k], through, glow(k));
}
__device__ inline void stored(const float (&colour)[96], float *light, int beam, int lane) {
#pragma unroll
    for (int k = 0; k < 96; ++k) light[((size_t)beam * 96 + k) * 32 + lane] = colour[k];
}
__global__ void __launch_bounds__(128) canopy(const uint2 *__restrict__ cells, uint32_t mask, int hops, float *light) {
    int beam = (blockIdx.x * 128 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    uint32_t at = hashed(beam * 31 + 7) & mask;
    float colour[96], shift = 1.f + 0.01f * lane;
#pragma unroll
    for (int k = 0; k < 96; ++k) colour[k] = 1.f;
#pragma unroll 1
    for (int h = 0; h < hops; ++h) absorbed(colour, fmaf(shift, hop(cells, mask, h, at), 0.9f));
    stored(colour, light, beam, lane);
}
__global__ void __launch_bounds__(128) followed(const uint2 *__restrict__ cells, uint32_t mask, int hops, float *met) {
    int beam = (blockIdx.x * 128 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    uint32_t at = hashed(beam * 31 + 7) & mask;
    float mine = 0;
    for (int h = 0; h < hops; ++h) {
        float seen = hop(cells, mask, h, at);
        if (h % 32 == lane) mine = seen;
        if (h % 32 == 31) met[(size_t)beam * hops + h - 31 + lane] = mine;
    }
}
__global__ void __launch_bounds__(128) coloured(const float *__restrict__ met, int hops, float *light) {
    int beam = (blockIdx.x * 128 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    float colour[96], shift = 1.f + 0.01f * lane, next = met[(size_t)beam * hops + lane];
#pragma unroll
    for (int k = 0; k < 96; ++k) colour[k] = 1.f;
    for (int first = 0; first < hops; first += 32) {
        float mine = next;
        if (first + 32 < hops) next = met[(size_t)beam * hops + first + 32 + lane];
#pragma unroll 1
        for (int h = 0; h < 32; ++h) absorbed(colour, fmaf(shift, __shfl_sync(~0u, mine, h), 0.9f));
    }
    stored(colour, light, beam, lane);
}
template <bool ill> Step leaves() {
    const int beams = 132 * 16 * 8, hops = 96;
    const uint32_t cells_n = 2 << 20;
    uint2 *cells = (uint2 *)buffer<uint32_t>(2 * cells_n, 0, 4294967295.0);
    float *light = buffer<float>((size_t)beams * 96 * 32), *met = buffer<float>((size_t)beams * hops);
    return [=] {
        if (ill) {
            LAUNCH(canopy, beams / 4, 128, 0, cells, cells_n - 1, hops, light);
        } else {
            LAUNCH(followed, beams / 4, 128, 0, cells, cells_n - 1, hops, met);
            LAUNCH(coloured, beams / 4, 128, 0, met, hops, light);
        }
    };
}
ILL_AND_CURED(leaves, "light-under-leaves", leaves)

// ---------------------------------------------------------------------------------------------------------------------
// occupancy-shared-memory. Looking words up in a B-tree of 32-way nodes, a warp a word: a node of 128 bytes a level, five levels (the leaves: 134 MB). Results are kept in shared memory
// (24 KB a warp) until the end: 2 blocks of 4 warps a SM, each waiting for L2 or DRAM: 1536 x ~1500 cycles = 2.3 M. The twin writes each 32 results at once: 64 warps a SM.
__device__ inline int descend(const uint32_t *__restrict__ nodes, uint32_t word, int lane) {
    int node = 0, first = 0, count = 1;
#pragma unroll
    for (int level = 0; level < 5; ++level) {
        // Keys of a node lie evenly in its range: key k begins child k.
        uint32_t key = nodes[(size_t)(first + node) * 32 + lane];
        int child = __popc(__ballot_sync(~0u, key <= word)) - 1;
        node = node * 32 + max(child, 0), first += count, count *= 32;
    }
    return node;
}
__global__ void grown(uint32_t *nodes, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint32_t node = i / 32, first = 0, count = 1;
    int level = 0;
    while (node >= first + count) first += count, count *= 32, ++level;
    nodes[i] = ((node - first) * 32 + i % 32) << (32 - 5 * (level + 1));
}
__global__ void __launch_bounds__(128) lookup_staged(const uint32_t *nodes, float4 *out, int each) {
    extern __shared__ float4 staged[];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, all = blockIdx.x * 4 + warp;
    float4 *mine = staged + warp * each;
#pragma unroll 1
    for (int k = 0; k < each; ++k) {
        uint32_t word = hashed(all * each + k);
        int place = descend(nodes, word, lane);
        if (lane == 0) mine[k] = make_float4(place, word & 1023, k, 1.f);
    }
    __syncwarp();
    for (int k = lane; k < each; k += 32) out[(size_t)all * each + k] = mine[k];
}
__global__ void __launch_bounds__(128) lookup(const uint32_t *nodes, float4 *out, int each) {
    int lane = threadIdx.x % 32, all = blockIdx.x * 4 + threadIdx.x / 32;
    float4 mine;
#pragma unroll 1
    for (int k = 0; k < each; ++k) {
        uint32_t word = hashed(all * each + k);
        int place = descend(nodes, word, lane);
        if (lane == k % 32) mine = make_float4(place, word & 1023, k, 1.f);
        if (k % 32 == 31) out[(size_t)all * each + k - 31 + lane] = mine;
    }
}
template <bool ill> Step dictionary() {
    const int nodes_n = 1 + 32 + 1024 + 32768 + 1048576, words = 264 * 4 * 1536;
    uint32_t *nodes = buffer<uint32_t>(nodes_n * 32);
    grown<<<nodes_n / 8 + 1, 256>>>(nodes, nodes_n * 32u);
    float4 *out = (float4 *)buffer<float>(4ull * words);
    return [=] {
        if (ill) {
            CHECK(cudaFuncSetAttribute(lookup_staged, cudaFuncAttributeMaxDynamicSharedMemorySize, 4 * 1536 * 16));
            LAUNCH(lookup_staged, 264, 128, 4 * 1536 * 16, nodes, out, 1536);
        } else {
            LAUNCH(lookup, 264 * 8, 128, 0, nodes, out, 192);
        }
    };
}
ILL_AND_CURED(dictionary, "words-in-a-lexicon", dictionary)

// ---------------------------------------------------------------------------------------------------------------------
// occupancy-block-size. Shelves of a warehouse as linked lists of nodes of 128 bytes (31 goods and the next node), a warp a list and a block a warp: 32 blocks, so 32 warps a SM, each waiting ~0.5 us
// for a line: 1.2 TB/s; the twin has 8 lists a block: 64 warps, twice as many lines in flight.
template <int block> __global__ void __launch_bounds__(block) shelves(const uint32_t *__restrict__ nodes, uint32_t mask, int hops, float *stock, int lists) {
    int list = (blockIdx.x * block + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (list >= lists) return;
    uint32_t at = hashed(list * 13 + 5) & mask;
    float mine = 0;
    for (int h = 0; h < hops; ++h) {
        uint32_t word = nodes[(size_t)at * 32 + lane];
        mine += (word >> 16) * 1e-3f;
        at = (__shfl_sync(~0u, word, 31) + h) & mask;
    }
    mine = over_warp(mine);
    if (lane == 0) stock[list] = mine;
}
template <bool ill> Step warehouse() {
    const int lists = 132 * 64 * 8;
    const uint32_t count = 1 << 20;
    uint32_t *nodes = buffer<uint32_t>(32ull * count, 0, 4294967295.0);
    float *stock = buffer<float>(lists);
    return [=] {
        if (ill) LAUNCH(shelves<32>, lists, 32, 0, nodes, count - 1, 96, stock, lists);
        else LAUNCH(shelves<256>, lists / 8, 256, 0, nodes, count - 1, 96, stock, lists);
    };
}
ILL_AND_CURED(warehouse, "shelves-of-a-warehouse", warehouse)

// ---------------------------------------------------------------------------------------------------------------------
// dependent-chain. Exact totals (Kahan) of a ledger of 8192 items under 16896 exchange rates, a rate a thread: 132 blocks of 128: a warp a scheduler, and four dependent additions an
// item (16 cycles and more for 6 instructions); the twin has four totals a thread, each with its own error, joined at the end.
template <int totals> __global__ void __launch_bounds__(128) exact(const float4 *__restrict__ ledger, int quads, int rounds, float *total) {
    __shared__ float4 page[2048];
    int i = blockIdx.x * 128 + threadIdx.x;
    float rate = 0.8f + 1e-5f * i, sum[4] = {}, error[4] = {};
    for (int at = 0; at < quads; at += 2048) {
        __syncthreads();
        for (int k = threadIdx.x; k < 2048; k += 128) page[k] = ledger[at + k];
        __syncthreads();
        for (int r = 0; r < rounds; ++r) {
            float now = rate + 0.01f * r;
#pragma unroll 4
            for (int k = 0; k < 2048; ++k) {
                float4 four = page[k];
                float item[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    int s = j % totals;
                    float y = __fadd_rn(__fmul_rn(item[j], now), -error[s]), t = __fadd_rn(sum[s], y);
                    error[s] = __fadd_rn(__fadd_rn(t, -sum[s]), -y), sum[s] = t;
                }
            }
        }
    }
    total[i] = ((sum[0] + sum[1]) + (sum[2] + sum[3])) - ((error[0] + error[1]) + (error[2] + error[3]));
}
template <bool ill> Step ledger_of() {
    float4 *ledger = (float4 *)buffer<float>(4 * 4096);
    float *total = buffer<float>(132 * 128);
    return [=] { LAUNCH(exact<ill ? 1 : 4>, 132, 128, 0, ledger, 4096, 4, total); };
}
ILL_AND_CURED(ledger_of, "ledger-in-many-coins", ledger_of)

// ---------------------------------------------------------------------------------------------------------------------
// instruction-cache. Calibration curves of 128 kinds of sensors, each a generated function of 128 coefficients (immediates), at two points a thread: 128 x ~260 instructions x 16 B =
// 530 KB of code; each warp takes another kind each time. The twin has one loop and the coefficients in shared memory (64 KB).
__host__ __device__ constexpr float coefficient(int kind, int k) { return ((kind * 131 + k * 37 + (kind * k) % 97) % 1009) * 9.7e-4f - 0.4885f; }
template <int kind> __device__ __noinline__ float2 curve(float2 x) {
    float2 y = make_float2(0.f, 0.f);
#pragma unroll
    for (int k = 0; k < 128; ++k) {
        const float c = coefficient(kind, k);
        y.x = fmaf(y.x, x.x, c), y.y = fmaf(y.y, x.y, c);
    }
    return y;
}
#define CURVE1(k) case k: return curve<k>(x);
#define CURVE4(k) CURVE1(k) CURVE1(k + 1) CURVE1(k + 2) CURVE1(k + 3)
#define CURVE16(k) CURVE4(k) CURVE4(k + 4) CURVE4(k + 8) CURVE4(k + 12)
__device__ float2 calibrated(int kind, float2 x) {
    switch (kind) {
        CURVE16(0) CURVE16(16) CURVE16(32) CURVE16(48) CURVE16(64) CURVE16(80) CURVE16(96) CURVE16(112)
    }
    return x;
}
__global__ void __launch_bounds__(256) generated(float2 *readings, int each) {
    int warp = (blockIdx.x * 256 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    for (int k = 0; k < each; ++k) {
        size_t at = ((size_t)warp * each + k) * 32 + lane;
        int kind = __shfl_sync(~0u, hashed(warp * each + k) & 127, 0);
        float2 x = readings[at];
        float2 y = calibrated(kind, x);
        readings[at] = make_float2(0.5f + 0.1f * y.x / (1.f + fabsf(y.x)), 0.5f + 0.1f * y.y / (1.f + fabsf(y.y)));
    }
}
__global__ void __launch_bounds__(256) tabulated(float2 *readings, const float4 *__restrict__ table, int each) {
    extern __shared__ float4 curves[];
    for (int k = threadIdx.x; k < 128 * 32; k += 256) curves[k] = table[k];
    __syncthreads();
    int warp = (blockIdx.x * 256 + threadIdx.x) / 32, lane = threadIdx.x % 32;
    for (int k = 0; k < each; ++k) {
        size_t at = ((size_t)warp * each + k) * 32 + lane;
        const float4 *mine = curves + 32 * (hashed(warp * each + k) & 127);
        float2 x = readings[at], y = make_float2(0.f, 0.f);
#pragma unroll 4
        for (int q = 0; q < 32; ++q) {
            float4 c = mine[q];
            y.x = fmaf(y.x, x.x, c.x), y.y = fmaf(y.y, x.y, c.x), y.x = fmaf(y.x, x.x, c.y), y.y = fmaf(y.y, x.y, c.y);
            y.x = fmaf(y.x, x.x, c.z), y.y = fmaf(y.y, x.y, c.z), y.x = fmaf(y.x, x.x, c.w), y.y = fmaf(y.y, x.y, c.w);
        }
        readings[at] = make_float2(0.5f + 0.1f * y.x / (1.f + fabsf(y.x)), 0.5f + 0.1f * y.y / (1.f + fabsf(y.y)));
    }
}
template <bool ill> Step curves_of() {
    const int blocks = 132 * 3, each = 192;
    float2 *readings = (float2 *)buffer<float>(2ull * blocks * 256 * each);
    std::vector<float4> table;
    for (int kind = 0; kind < 128; ++kind)
        for (int k = 0; k < 128; k += 4) table.push_back(make_float4(coefficient(kind, k), coefficient(kind, k + 1), coefficient(kind, k + 2), coefficient(kind, k + 3)));
    float4 *curves = copied(table);
    CHECK(cudaFuncSetAttribute(tabulated, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
    return [=] {
        if (ill) LAUNCH(generated, blocks, 256, 0, readings, each);
        else LAUNCH(tabulated, blocks, 256, 64 << 10, readings, curves, each);
    };
}
ILL_AND_CURED(curves_of, "sensor-curves", curves_of)

// ---------------------------------------------------------------------------------------------------------------------
// l2-capacity. Counting 32 M words of DNA in 64 M counters (256 MB): each addition fetches and later writes back a sector from DRAM: 2 GB at a random pattern's rate (~1 ms). The twin
// goes over the words (128 MB) eight times, and counts those of an eighth of the table (32 MB) each time: 1 GB in order, and atomics that stay in L2.
__global__ void count_words(const uint4 *__restrict__ words, int n, int *table, int shift, int part) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint4 w = __ldcs(words + i); // read once: not to be kept in L2
    uint32_t four[4] = {w.x >> 6, w.y >> 6, w.z >> 6, w.w >> 6};
#pragma unroll
    for (int k = 0; k < 4; ++k)
        if ((int)(four[k] >> shift) == part) atomicAdd(table + four[k], 1);
}
template <bool ill> Step dna() {
    const int n = 8 << 20;
    uint4 *words = (uint4 *)buffer<uint32_t>(4ull * n, 0, 4294967295.0);
    int *table = buffer<int>(64 << 20);
    return [=] {
        for (int part = 0; part < (ill ? 1 : 8); ++part) LAUNCH(count_words, n / 256, 256, 0, words, n, table, ill ? 26 : 23, part);
    };
}
ILL_AND_CURED(dna, "counted-kmers", dna)

// ---------------------------------------------------------------------------------------------------------------------
// tensor-cores-unused. A filter bank of 2048 wavelets on 4096 windows of 1024 samples, in bfloat16, tiled with 8 x 8 results a thread on the FP32 units: 17 GFLOP: 0.4 ms at the
// very least; the twin has the same tiles (128 x 128 x 32) by WMMA: ~0.08 ms.
constexpr int TM = 128, TN = 128, TK = 32;
__global__ void __launch_bounds__(256) bank_scalar(const __nv_bfloat16 *__restrict__ a, const __nv_bfloat16 *__restrict__ b, float *c, int n, int k_all) {
    __shared__ float as[TK][TM + 4], bs[TK][TN + 4];
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    float sum[8][8] = {};
    const __nv_bfloat16 *from_a = a + (size_t)blockIdx.y * TM * k_all, *from_b = b + (size_t)blockIdx.x * TN * k_all;
    for (int at = 0; at < k_all; at += TK) {
        __syncthreads();
        for (int e = threadIdx.x; e < TM * TK / 8; e += 256) {
            int row = e % TM, part = e / TM * 8;
            uint4 x = *(const uint4 *)(from_a + (size_t)row * k_all + at + part), y = *(const uint4 *)(from_b + (size_t)row * k_all + at + part);
            uint32_t xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
            for (int q = 0; q < 4; ++q) {
                float2 p = pair_of(xs[q]), o = pair_of(ys[q]);
                as[part + 2 * q][row] = p.x, as[part + 2 * q + 1][row] = p.y, bs[part + 2 * q][row] = o.x, bs[part + 2 * q + 1][row] = o.y;
            }
        }
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < TK; ++k) {
            float x[8], y[8];
            *(float4 *)x = *(float4 *)&as[k][ty * 4], *(float4 *)(x + 4) = *(float4 *)&as[k][64 + ty * 4];
            *(float4 *)y = *(float4 *)&bs[k][tx * 4], *(float4 *)(y + 4) = *(float4 *)&bs[k][64 + tx * 4];
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) sum[i][j] = fmaf(x[i], y[j], sum[i][j]);
        }
    }
    for (int i = 0; i < 8; ++i)
        for (int h = 0; h < 2; ++h)
            *(float4 *)&c[(size_t)(blockIdx.y * TM + i / 4 * 64 + ty * 4 + i % 4) * n + blockIdx.x * TN + h * 64 + tx * 4] = *(float4 *)&sum[i][h * 4];
}
__global__ void __launch_bounds__(256) bank_matrix(const __nv_bfloat16 *__restrict__ a, const __nv_bfloat16 *__restrict__ b, float *c, int n, int k_all) {
    using namespace nvcuda;
    constexpr int pitch = TK + 8;
    __shared__ __nv_bfloat16 as[TM * pitch], bs[TN * pitch];
    int warp = threadIdx.x / 32, wy = warp / 2, wx = warp % 2; // 32 x 64 a warp
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][4];
    for (auto &row : sum)
        for (auto &f : row) wmma::fill_fragment(f, 0.f);
    const __nv_bfloat16 *from_a = a + (size_t)blockIdx.y * TM * k_all, *from_b = b + (size_t)blockIdx.x * TN * k_all;
    for (int at = 0; at < k_all; at += TK) {
        __syncthreads();
        for (int e = threadIdx.x; e < TM * TK / 8; e += 256) {
            int row = e / 4, part = e % 4 * 8;
            *(uint4 *)(as + row * pitch + part) = *(const uint4 *)(from_a + (size_t)row * k_all + at + part);
            *(uint4 *)(bs + row * pitch + part) = *(const uint4 *)(from_b + (size_t)row * k_all + at + part);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TK; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> x[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> y[4];
            for (int i = 0; i < 2; ++i) wmma::load_matrix_sync(x[i], as + (wy * 32 + i * 16) * pitch + k, pitch);
            for (int j = 0; j < 4; ++j) wmma::load_matrix_sync(y[j], bs + (wx * 64 + j * 16) * pitch + k, pitch);
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 4; ++j) wmma::mma_sync(sum[i][j], x[i], y[j], sum[i][j]);
        }
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
            wmma::store_matrix_sync(c + (size_t)(blockIdx.y * TM + wy * 32 + i * 16) * n + blockIdx.x * TN + wx * 64 + j * 16, sum[i][j], n, wmma::mem_row_major);
}
template <bool ill> Step wavelets() {
    const int m = 4096, n = 2048, k = 1024;
    uint32_t *a = buffer<uint32_t>((size_t)m * k / 2), *b = buffer<uint32_t>((size_t)n * k / 2);
    near_one<<<1024, 256>>>(a, (size_t)m * k / 2);
    near_one<<<1024, 256>>>(b, (size_t)n * k / 2);
    float *c = buffer<float>((size_t)m * n);
    return [=] {
        if (ill) LAUNCH(bank_scalar, dim3(n / TN, m / TM), 256, 0, (__nv_bfloat16 *)a, (__nv_bfloat16 *)b, c, n, k);
        else LAUNCH(bank_matrix, dim3(n / TN, m / TM), 256, 0, (__nv_bfloat16 *)a, (__nv_bfloat16 *)b, c, n, k);
    };
}
ILL_AND_CURED(wavelets, "bank-of-wavelets", wavelets)

// ---------------------------------------------------------------------------------------------------------------------
// Healthy, dram-bound: heat in an ingot by a stored matrix of nine diagonals (ELL, with column numbers): 4 M rows: 302 MB of values and numbers, gathers that stay near: 0.08 ms at
// DRAM's rate; the numbers are read since the mesh has no order that the program knows of.
__global__ void near_columns(int *column, int rows, int wide) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int off[9] = {-wide - 1, -wide, -wide + 1, -1, 0, 1, wide - 1, wide, wide + 1};
    for (int k = 0; k < 9; ++k) column[(size_t)k * rows + i] = min(max(i + off[k], 0), rows - 1);
}
__global__ void ell_product(const float *__restrict__ value, const int *__restrict__ column, const float *__restrict__ x, float *__restrict__ y, int rows) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows) return;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 9; ++k) sum = fmaf(value[(size_t)k * rows + i], x[column[(size_t)k * rows + i]], sum);
    y[i] = sum;
}
CASE(ingot, "ingot") {
    const int rows = 8 << 20;
    float *value = buffer<float>(9ull * rows), *x = buffer<float>(rows), *y = buffer<float>(rows);
    int *column = buffer<int>(9ull * rows);
    near_columns<<<rows / 256, 256>>>(column, rows, 2048);
    return [=] {
        LAUNCH(ell_product, rows / 256, 256, 0, value, column, x, y, rows);
        LAUNCH(ell_product, rows / 256, 256, 0, value, column, y, x, rows);
    };
}

// Healthy, dram-bound: films turned by 90 degrees: a tile of 32 x 32 in shared memory, padded; rows in and columns out, both in lines of 128 B.
__global__ void __launch_bounds__(256) turned(const float *__restrict__ in, float *__restrict__ out, int wide, int high) {
    __shared__ float tile[32][33];
    int tx = threadIdx.x % 32, ty = threadIdx.x / 32, x = blockIdx.x * 32, y = blockIdx.y * 32;
#pragma unroll
    for (int r = 0; r < 32; r += 8) tile[ty + r][tx] = in[(size_t)(y + ty + r) * wide + x + tx];
    __syncthreads();
#pragma unroll
    for (int r = 0; r < 32; r += 8) out[(size_t)(x + ty + r) * high + high - 1 - (y + 31 - tx)] = tile[31 - tx][ty + r];
}
CASE(film, "film-on-its-side") {
    const int wide = 16384, high = 8192;
    float *in = buffer<float>((size_t)wide * high), *out = buffer<float>((size_t)wide * high);
    return [=] { LAUNCH(turned, dim3(wide / 32, high / 32), 256, 0, in, out, wide, high); };
}

// Healthy, compute-bound: a FIR filter of 128 taps (constants) over 64 M samples, eight results a thread from a window in registers: 8 FMAs a tap.
__constant__ float taps[128];
__global__ void __launch_bounds__(128) filtered(const float *__restrict__ in, float *__restrict__ out) {
    __shared__ float window[128 * 9 + 160];
    size_t base = (size_t)blockIdx.x * 1024;
    // Nine words for eight samples: no conflicts at a stride of eight.
    for (int k = threadIdx.x; k < 1024 + 136; k += 128) window[k + k / 8] = in[base + k];
    __syncthreads();
    float x[16], sum[8] = {};
    const float *mine = window + threadIdx.x * 9;
#pragma unroll
    for (int k = 0; k < 8; ++k) x[k] = mine[k];
#pragma unroll
    for (int t = 0; t < 128; t += 8) {
#pragma unroll
        for (int k = 0; k < 8; ++k) x[8 + k] = mine[t / 8 * 9 + 9 + k];
#pragma unroll
        for (int u = 0; u < 8; ++u)
#pragma unroll
            for (int k = 0; k < 8; ++k) sum[k] = fmaf(taps[t + u], x[u + k], sum[k]);
#pragma unroll
        for (int k = 0; k < 8; ++k) x[k] = x[8 + k];
    }
    float4 *to = (float4 *)(out + base + threadIdx.x * 8);
    to[0] = make_float4(sum[0], sum[1], sum[2], sum[3]), to[1] = make_float4(sum[4], sum[5], sum[6], sum[7]);
}
CASE(hydrophone, "hydrophone") {
    const int n = 64 << 20;
    float *in = buffer<float>(n + 1024), *out = buffer<float>(n);
    return [=] {
        for (int k = 0; k < 2; ++k) LAUNCH(filtered, n / 1024, 128, 0, in, out);
    };
}

// Healthy, occupancy-enough: power of 1 GB of samples through a pipeline of asynchronous copies: 6 stages of 16 KB a block of 128 threads, two blocks a SM (8 warps): 160 KB in
// flight a SM, more than DRAM needs.
__global__ void __launch_bounds__(128) piped(const float4 *__restrict__ in, int tiles, float *power) {
    constexpr int stages = 6, each = 1024;
    extern __shared__ float4 stage[];
    float mine = 0;
    auto fetch = [&](int k) {
        int tile = blockIdx.x + k * gridDim.x;
        if (tile < tiles)
            for (int e = threadIdx.x; e < each; e += 128) __pipeline_memcpy_async(stage + k % stages * each + e, in + (size_t)tile * each + e, 16);
        __pipeline_commit();
    };
    for (int k = 0; k < stages - 1; ++k) fetch(k);
    for (int k = 0; blockIdx.x + k * gridDim.x < tiles; ++k) {
        fetch(k + stages - 1);
        __pipeline_wait_prior(stages - 1);
#pragma unroll
        for (int e = 0; e < each / 128; ++e) {
            float4 x = stage[k % stages * each + e * 128 + threadIdx.x]; // what this thread itself has fetched
            mine = fmaf(x.x, x.x, mine), mine = fmaf(x.y, x.y, mine), mine = fmaf(x.z, x.z, mine), mine = fmaf(x.w, x.w, mine);
        }
    }
    mine = over_warp(mine);
    if (threadIdx.x % 32 == 0) atomicAdd(power, mine);
}
CASE(quiet_sky, "quiet-sky") {
    const int tiles = 64 << 10;
    float4 *in = (float4 *)buffer<float>(4096ull * tiles);
    float *power = buffer<float>(1);
    CHECK(cudaFuncSetAttribute(piped, cudaFuncAttributeMaxDynamicSharedMemorySize, 96 << 10));
    return [=] { LAUNCH(piped, 264, 128, 96 << 10, in, tiles, power); };
}

// Healthy, l2-bound: routes over a city: rows of 128 bytes of a table of 20 MB, in random order, a row a quarter-warp; 256 rows added for each route.
__global__ void __launch_bounds__(256) routes(const float4 *__restrict__ table, uint32_t rows, const uint32_t *__restrict__ stops, float4 *out, int many) {
    int group = (blockIdx.x * 256 + threadIdx.x) / 8, lane = threadIdx.x % 8;
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
    for (int k = 0; k < many; ++k) {
        uint32_t row = stops[(group + k * 977) & 0xfffff] % (163840u);
        float4 r = table[row * 8 + lane];
        sum.x += r.x, sum.y += r.y, sum.z += r.z, sum.w += r.w;
    }
    out[group * 8 + lane] = sum;
}
CASE(city, "routes-over-a-city") {
    const uint32_t rows = 163840;
    float4 *table = (float4 *)buffer<float>(rows * 32ull);
    uint32_t *stops = buffer<uint32_t>(1 << 20, 0, 4294967295.0);
    const int groups = 132 * 8 * 32 * 4;
    float4 *out = (float4 *)buffer<float>(groups * 32ull);
    return [=] { LAUNCH(routes, groups / 32, 256, 0, table, rows, stops, out, 256); };
}

int main(int argc, char **argv) { return run_cases(argc, argv); }
