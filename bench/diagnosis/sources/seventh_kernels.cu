// A seventh set of kernels: one planted illness a case (or none); NAME.cured does the same without it.
#include "harness.h"
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <cub/block/block_reduce.cuh>
#include <mma.h>
namespace cg = cooperative_groups;

// ------------------------------------------------------------------------------------------------------------------
// Small things that the cases share.
template <int block> __device__ float block_sum(float mine) {
    __shared__ float part[block / 32];
    for (int o = 16; o; o >>= 1) mine += __shfl_xor_sync(~0u, mine, o);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = mine;
    __syncthreads();
    float all = threadIdx.x < block / 32 ? part[threadIdx.x] : 0.f;
    if (threadIdx.x < 32)
        for (int o = 16; o; o >>= 1) all += __shfl_xor_sync(~0u, all, o);
    return all; // in thread 0
}
__global__ void blend(float4 *field, const float4 *__restrict__ other, size_t n, float w) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        float4 a = field[i], b = other[i];
        a.x += w * (b.x - a.x), a.y += w * (b.y - a.y), a.z += w * (b.z - a.z), a.w += w * (b.w - a.w);
        field[i] = a;
    }
}

// ------------------------------------------------------------------------------------------------------------------
// array-of-structures. Agents of a traffic simulation, 64 bytes each, of which a tick of the clock reads 8 and writes 4.
// 24 M agents: 32 B read and 32 B written of each (1.5 GB) against 12 B (0.29 GB).
struct Commuter {
    float x, y, heading, patience;
    int home, office, line, stop;
    float wallet, age, speed, wait;
    int flags, seed, group, spare;
};
struct Commuters {
    float *wait, *speed;
};
__device__ inline float waited(float wait, float speed, float dt) { return speed < 0.2f ? wait + dt : wait * 0.5f; }
__global__ void tick(Commuter *who, int n, float dt) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) who[i].wait = waited(who[i].wait, who[i].speed, dt);
}
__global__ void tick_fields(Commuters who, int n, float dt) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) who.wait[i] = waited(who.wait[i], who.speed[i], dt);
}
static const int agents_n = 24 << 20;
CASE(commuters_ill, "commuters") {
    Commuter *who = (Commuter *)buffer<float>((size_t)agents_n * 16);
    return [=] {
        for (int k = 0; k < 3; ++k) LAUNCH(tick, agents_n / 256, 256, 0, who, agents_n, 0.1f);
    };
}
CASE(commuters_cured, "commuters.cured") {
    Commuters who{buffer<float>(agents_n), buffer<float>(agents_n)};
    return [=] {
        for (int k = 0; k < 3; ++k) LAUNCH(tick_fields, agents_n / 256, 256, 0, who, agents_n, 0.1f);
    };
}

// ------------------------------------------------------------------------------------------------------------------
// uncoalesced-access. k-means: a thread reads the 32 coordinates of its point, and points lie one after the other (a stride of 128 B);
// the twin has coordinate after coordinate. 8 M points = 1 GB: 0.25 ms by DRAM; 32 tags a load: 8 M loads of warps x 32 / 132 = 2 M cycles.
__constant__ float means[8][32];
template <bool by_point> __global__ void __launch_bounds__(256) nearest(const float *__restrict__ points, int n, int *label) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float d[8] = {};
#pragma unroll
    for (int k = 0; k < 32; ++k) {
        float x = by_point ? points[(size_t)i * 32 + (k * 5 & 31)] : points[(size_t)(k * 5 & 31) * n + i];
#pragma unroll
        for (int c = 0; c < 8; ++c) {
            float off = x - means[c][k * 5 & 31];
            d[c] = fmaf(off, off, d[c]);
        }
    }
    int best = 0;
    float least = d[0];
#pragma unroll
    for (int c = 1; c < 8; ++c)
        if (d[c] < least) least = d[c], best = c;
    label[i] = best;
}
template <bool by_point> static Step segments() {
    const int n = 8 << 20;
    float *points = buffer<float>((size_t)n * 32);
    int *label = buffer<int>(n, 0, 8);
    float centres[8][32];
    for (int c = 0; c < 8; ++c)
        for (int k = 0; k < 32; ++k) centres[c][k] = ((c * 37 + k * 11) % 64) / 64.f;
    CHECK(cudaMemcpyToSymbol(means, centres, sizeof centres));
    float4 *counts = (float4 *)buffer<float>(16 << 20), *before = (float4 *)buffer<float>(16 << 20);
    return [=] {
        LAUNCH(nearest<by_point>, n / 256, 256, 0, points, n, label);
        LAUNCH(blend, 1056, 256, 0, counts, before, (size_t)4 << 20, 0.1f);
    };
}
CASE(segments_ill, "market-segments") { return segments<true>(); }
CASE(segments_cured, "market-segments.cured") { return segments<false>(); }

// ------------------------------------------------------------------------------------------------------------------
// random-gather. Tetrahedra read the four corners' temperatures (128 MB of nodes): numbered as the mesh generator happened to, against
// numbered along the mesh. 16 M x 4 sectors of 32 B (64 B of DRAM each, where a pair is fetched) = 2 to 4 GB against 0.4 GB.
__host__ __device__ inline uint32_t shuffled(uint32_t i, uint32_t mask) {
    i = (i * 0x9E3779B1u) & mask;
    i ^= i >> 13;
    i = (i * 0x85EBCA6Bu) & mask;
    i ^= i >> 11;
    return (i * 0xC2B2AE35u) & mask;
}
template <bool shuffle> __global__ void number(int4 *corners, float *heat, uint32_t elements, uint32_t nodes) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, mask = nodes - 1;
    auto id = [&](uint32_t k) { return (int)(shuffle ? shuffled(k & mask, mask) : k & mask); };
    if (i < elements) corners[i] = make_int4(id(2 * i), id(2 * i + 1), id(2 * i + 2), id(2 * i + 2048));
    if (i < nodes) heat[id(i)] = (i % 977) * 1e-3f;
}
__global__ void conduct(const int4 *__restrict__ corners, const float *__restrict__ heat, float *flux, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int4 at = corners[i];
    float a = heat[at.x], b = heat[at.y], c = heat[at.z], d = heat[at.w];
    flux[i] = 0.4f * (a - b) + 0.3f * (b - c) + 0.2f * (c - d) + 0.1f * (d - a);
}
template <bool shuffle> static Step mesh() {
    const uint32_t elements = 16 << 20, nodes = 32 << 20;
    int4 *corners = (int4 *)buffer<int>((size_t)elements * 4, 0, 1);
    float *heat = buffer<float>(nodes), *flux = buffer<float>(elements);
    number<shuffle><<<nodes / 256, 256>>>(corners, heat, elements, nodes);
    return [=] { LAUNCH(conduct, elements / 256, 256, 0, corners, heat, flux, (int)elements); };
}
CASE(mesh_ill, "tetrahedra") { return mesh<true>(); }
CASE(mesh_cured, "tetrahedra.cured") { return mesh<false>(); }

// ------------------------------------------------------------------------------------------------------------------
// narrow-access. A 5 x 5 mean of bytes, byte by byte (25 loads and a store of one byte a thread), against words of four bytes (15 loads for
// 8 pixels, sums in halves of words). 128 M pixels: 105 M loads of warps = 0.8 M a SM, against 8 M... and 10 times the instructions.
__global__ void smooth_bytes(const uint8_t *__restrict__ in, uint8_t *__restrict__ out, int w, int h) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x < 2 || y < 2 || x >= w - 6 || y >= h - 2) return;
    const uint8_t *at = in + (size_t)y * w + x;
    unsigned sum = 0;
#pragma unroll
    for (int dy = -2; dy <= 2; ++dy)
#pragma unroll
        for (int dx = -2; dx <= 2; ++dx) sum += at[(ptrdiff_t)dy * w + dx];
    out[(size_t)y * w + x] = (sum * 41) >> 10;
}
__global__ void smooth_words(const uint8_t *__restrict__ in, uint8_t *__restrict__ out, int w, int h) {
    int x = (blockIdx.x * 32 + threadIdx.x) * 8, y = blockIdx.y * 8 + threadIdx.y;
    if (x < 4 || y < 2 || x >= w - 8 || y >= h - 2) return;
    unsigned even[4] = {}, odd[4] = {};
#pragma unroll
    for (int dy = -2; dy <= 2; ++dy) {
        const unsigned *row = (const unsigned *)(in + (size_t)(y + dy) * w + x - 4);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            unsigned four = row[k];
            even[k] += four & 0xff00ff, odd[k] += (four >> 8) & 0xff00ff;
        }
    }
    unsigned s[16];
#pragma unroll
    for (int k = 0; k < 4; ++k) s[4 * k] = even[k] & 0xffff, s[4 * k + 1] = odd[k] & 0xffff, s[4 * k + 2] = even[k] >> 16, s[4 * k + 3] = odd[k] >> 16;
    unsigned r[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) r[k] = ((s[k + 2] + s[k + 3] + s[k + 4] + s[k + 5] + s[k + 6]) * 41) >> 10;
    uint2 eight = make_uint2(r[0] | r[1] << 8 | r[2] << 16 | r[3] << 24, r[4] | r[5] << 8 | r[6] << 16 | r[7] << 24);
    *(uint2 *)(out + (size_t)y * w + x) = eight;
}
template <bool bytes> static Step mosaic() {
    const int w = 16384, h = 8192;
    uint8_t *in = buffer<uint8_t>((size_t)w * h, 0, 256), *out = buffer<uint8_t>((size_t)w * h, 0, 1);
    return [=] {
        for (int pass = 0; pass < 2; ++pass)
            if (bytes) LAUNCH(smooth_bytes, dim3(w / 32, h / 8), dim3(32, 8), 0, in, out, w, h);
            else LAUNCH(smooth_words, dim3(w / 256, h / 8), dim3(32, 8), 0, in, out, w, h);
    };
}
CASE(mosaic_ill, "lunar-mosaic") { return mosaic<true>(); }
CASE(mosaic_cured, "lunar-mosaic.cured") { return mosaic<false>(); }

// ------------------------------------------------------------------------------------------------------------------
// bank-conflicts. Implicit vertical mixing: a tridiagonal system of 32 levels a thread, in shared memory. Rows of 32 floats (all lanes in
// one bank) against rows of 33. 2 M columns: 64 K warps x 190 accesses x 32 wavefronts / 132 = 3 M cycles, against 0.1 M.
__global__ void __launch_bounds__(96) mix(float *field, int columns, float k, int pitch) {
    extern __shared__ float sh[];
    float *c = sh, *d = sh + 96 * pitch;
    size_t first = (size_t)blockIdx.x * 96;
    int here = min(96, (int)(columns - first));
    for (int i = threadIdx.x; i < here * 32; i += 96) d[i / 32 * pitch + i % 32] = field[first * 32 + i];
    __syncthreads();
    if (threadIdx.x < here) {
        float *mc = c + threadIdx.x * pitch, *md = d + threadIdx.x * pitch;
        float before_c = 0, before_d = 0;
        for (int z = 0; z < 32; ++z) {
            float up = z ? k : 0.f, down = z < 31 ? k : 0.f;
            float scale = __fdividef(1.f, 1.f + up + down - up * before_c);
            before_c = down * scale;
            before_d = (md[z] + up * before_d) * scale;
            mc[z] = before_c, md[z] = before_d;
        }
        float x = md[31];
        for (int z = 30; z >= 0; --z) md[z] = x = fmaf(mc[z], x, md[z]);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < here * 32; i += 96) field[first * 32 + i] = d[i / 32 * pitch + i % 32];
}
static Step columns_of_air(int pitch) {
    const int columns = 2 << 20;
    float *field = buffer<float>((size_t)columns * 32, 250, 300);
    int bytes = 2 * 96 * pitch * 4;
    return [=] { LAUNCH(mix, (columns + 95) / 96, 96, bytes, field, columns, 0.4f, pitch); };
}
CASE(air_ill, "columns-of-air") { return columns_of_air(32); }
CASE(air_cured, "columns-of-air.cured") { return columns_of_air(33); }

// ------------------------------------------------------------------------------------------------------------------
// register-spills. Spherical-harmonic-like moments of sources on the sky: 48 sums a thread. Eight blocks of 256 are demanded of a SM
// (32 registers), so most sums live in local memory, and each source loads and stores them: ~80 accesses beside 48 FMAs; the twin has 2 blocks.
template <int blocks> __global__ void __launch_bounds__(256, blocks) moments(const float4 *__restrict__ sources, int per_thread, float *out) {
    float sum[48];
#pragma unroll
    for (int k = 0; k < 48; ++k) sum[k] = 0;
    int all = gridDim.x * 256, me = blockIdx.x * 256 + threadIdx.x;
    for (int s = 0; s < per_thread; ++s) {
        float4 q = sources[(size_t)s * all + me];
        float a = q.w, b = q.w * q.x, c = q.w * q.y;
#pragma unroll
        for (int k = 0; k < 48; k += 3) { // powers of z, times 1, x, y
            sum[k] += a, sum[k + 1] += b, sum[k + 2] += c;
            a *= q.z, b *= q.z, c *= q.z;
        }
    }
#pragma unroll
    for (int k = 0; k < 48; ++k) out[(size_t)k * all + me] = sum[k];
}
template <int blocks> static Step sky() {
    const int grid = 1056, per_thread = 128;
    float4 *sources = (float4 *)buffer<float>((size_t)grid * 256 * per_thread * 4, -1, 1);
    float *out = buffer<float>((size_t)grid * 256 * 48);
    return [=] { LAUNCH(moments<blocks>, grid, 256, 0, sources, per_thread, out); };
}
CASE(sky_ill, "sky-harmonics") { return sky<8>(); }
CASE(sky_cured, "sky-harmonics.cured") { return sky<2>(); }

// ------------------------------------------------------------------------------------------------------------------
// local-array-indexing. Counts of photons by energy, 24 bins of a thread's own, in an array of the thread (local memory: each lane's word in
// another line) against columns of shared memory. 192 M photons: 6 M warps x 2 accesses x ~20 lines / 132 = 1.8 M cycles; DRAM: 0.18 ms.
__device__ inline int bin_of(float energy) { return min((int)(energy * energy * 24.f), 23); }
template <bool local> __global__ void __launch_bounds__(256) photons(const float *__restrict__ energy, size_t n, unsigned *out) {
    size_t all = (size_t)gridDim.x * 256, me = blockIdx.x * 256 + threadIdx.x;
    if constexpr (local) {
        unsigned bins[24];
        for (int k = 0; k < 24; ++k) bins[k] = 0;
        for (size_t i = me; i < n; i += all) ++bins[bin_of(energy[i])];
        for (int k = 0; k < 24; ++k) out[k * all + me] = bins[k];
    } else {
        __shared__ unsigned bins[24][256];
        for (int k = 0; k < 24; ++k) bins[k][threadIdx.x] = 0;
        for (size_t i = me; i < n; i += all) ++bins[bin_of(energy[i])][threadIdx.x];
        for (int k = 0; k < 24; ++k) out[k * all + me] = bins[k][threadIdx.x];
    }
}
template <bool local> static Step burst() {
    size_t n = (size_t)192 << 20;
    float *energy = buffer<float>(n);
    unsigned *out = buffer<unsigned>((size_t)1056 * 256 * 24, 0, 1);
    return [=] { LAUNCH(photons<local>, 1056, 256, 0, energy, n, out); };
}
CASE(burst_ill, "gamma-burst") { return burst<true>(); }
CASE(burst_cured, "gamma-burst.cured") { return burst<false>(); }

// ------------------------------------------------------------------------------------------------------------------
// divergence. Rock under load: each point integrates the law of its material, of six; points come as drilled (laws mixed in each warp) against
// sorted by law. Six loops of ~100 x 6 instructions one after the other, against one: 128 K warps x 3600 / 528 = 0.9 M cycles against 0.15 M.
__device__ inline float yields(int law, float s, int rounds) {
    float e = 0.01f * s;
    switch (law) {
    case 0:
#pragma unroll 4
        for (int r = 0; r < rounds; ++r) e = fmaf(e, 0.99f, s * 1e-3f), s = fmaf(-e, 0.02f, s), e = fmaxf(e, s * 0.1f);
        break;
    case 1:
#pragma unroll 4
        for (int r = 0; r < rounds; ++r) s = s * (1.f - 0.01f * e), e = fmaf(s, s * 1e-4f, e), s += 1e-3f;
        break;
    case 2:
#pragma unroll 4
        for (int r = 0; r < rounds; ++r) e = fminf(fmaf(e, 1.01f, 1e-3f), s), s = fmaf(e * e, -1e-3f, s), e = fmaf(s, 1e-2f, e);
        break;
    case 3:
#pragma unroll 4
        for (int r = 0; r < rounds; ++r) s = fabsf(s - 0.3f * e), e = fmaf(e, s, 2e-3f), e = e * (1.3f - e);
        break;
    case 4:
#pragma unroll 4
        for (int r = 0; r < rounds; ++r) e = fmaf(s - e, 0.05f, e), s = fmaf(e, -0.04f, s) + 0.01f, s = fminf(s, 2.f);
        break;
    default:
#pragma unroll 4
        for (int r = 0; r < rounds; ++r) e = e + 0.1f * (s * s - e), s = fmaf(s, 0.97f, 0.02f * e), s = fmaxf(s, -e);
    }
    return e + s;
}
__global__ void load_rock(const uint8_t *__restrict__ law, const float *__restrict__ stress, float *strain, int n, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) strain[i] = yields(law[i], stress[i], rounds);
}
__global__ void survey(uint8_t *law, int n, bool sorted) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) law[i] = sorted ? (uint8_t)((long long)i * 6 / n) : (uint8_t)(hashed(i * 7 + 1) % 6);
}
static Step rock(bool sorted) {
    const int n = 4 << 20;
    uint8_t *law = buffer<uint8_t>(n, 0, 1);
    float *stress = buffer<float>(n), *strain = buffer<float>(n);
    survey<<<n / 256, 256>>>(law, n, sorted);
    return [=] { LAUNCH(load_rock, n / 128, 128, 0, law, stress, strain, n, 160); };
}
CASE(rock_ill, "drill-cores") { return rock(false); }
CASE(rock_cured, "drill-cores.cured") { return rock(true); }

// ------------------------------------------------------------------------------------------------------------------
// fp64-by-accident. Bed load in a river: pow(float, 1.5) and constants without f, in a helper. 16 M cells x 4 grain sizes x ~100 FP64
// instructions / 15 T/s = 0.45 ms and more; the twin (powf): ~25 FP32 instructions = 0.06 ms beside 0.03 ms of DRAM.
template <bool single> __device__ inline float transport(float tau, float critical) {
    if (single) {
        float over = fmaxf(tau - critical, 0.f);
        return 8.f * powf(over, 1.5f) + 0.05f * powf(tau + 0.1f + critical, 1.2f);
    }
    float over = fmaxf(tau - critical, 0.0);
    return 8.0 * pow(over, 1.5) + 0.05 * pow(tau + 0.1 + critical, 1.2);
}
template <bool single> __global__ void bed_load(const float *__restrict__ shear, float *load, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float tau = shear[i], sum = 0;
    for (int grain = 0; grain < 4; ++grain) sum += transport<single>(tau, 0.047f * (1 + grain));
    load[i] = sum;
}
template <bool single> static Step river_bed() {
    const int n = 16 << 20;
    float *shear = buffer<float>(n), *load = buffer<float>(n);
    float4 *level = (float4 *)buffer<float>(64 << 20), *rain = (float4 *)buffer<float>(64 << 20);
    return [=] {
        LAUNCH(blend, 2112, 256, 0, level, rain, (size_t)16 << 20, 0.2f); // healthy, 0.2 ms
        LAUNCH(bed_load<single>, n / 256, 256, 0, shear, load, n);
    };
}
CASE(bed_ill, "gravel-bed") { return river_bed<false>(); }
CASE(bed_cured, "gravel-bed.cured") { return river_bed<true>(); }

// ------------------------------------------------------------------------------------------------------------------
// special-functions. Powder diffraction: sine and cosine of 96 orders of an angle by the XU (2 a SM and 4 cycles), against a rotation (4 FMA):
// 8 M x 96 x 2 / 3.8 T/s = 0.42 ms against 8 M x 96 x 6 / 30 T/s = 0.16 ms. Four rounds.
template <bool each> __global__ void __launch_bounds__(256) rings(const float *__restrict__ angle, const float *__restrict__ weight, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float theta = angle[i], re = 0, im = 0;
    float s1 = __sinf(theta), c1 = __cosf(theta), s = s1, c = c1, t = theta;
#pragma unroll 8
    for (int order = 1; order <= 96; ++order) {
        float w = weight[order];
        if (each) {
            re = fmaf(w, __cosf(t), re), im = fmaf(w, __sinf(t), im);
            t += theta;
        } else {
            re = fmaf(w, c, re), im = fmaf(w, s, im);
            float next = fmaf(c, c1, -s * s1);
            s = fmaf(s, c1, c * s1), c = next;
        }
    }
    out[i] = re * re + im * im;
}
template <bool each> static Step powder() {
    const int n = 8 << 20;
    float *angle = buffer<float>(n, -1, 1), *weight = buffer<float>(128), *out = buffer<float>(n);
    return [=] {
        for (int k = 0; k < 4; ++k) LAUNCH(rings<each>, n / 256, 256, 0, angle, weight, out, n);
    };
}
CASE(powder_ill, "powder-rings") { return powder<true>(); }
CASE(powder_cured, "powder-rings.cured") { return powder<false>(); }

// ------------------------------------------------------------------------------------------------------------------
// integer-division. Shares of a secret: a polynomial of 24 terms at a point, modulo a prime that is an argument. A remainder of 64 bits is
// ~90 instructions: 8 M x 24 x 90 / 30 T/s = 0.6 ms; Montgomery's product is ~6 (wide multiplications at half rate): 0.07 ms.
__device__ inline uint32_t product(uint32_t a, uint32_t b, uint32_t p, uint32_t inverse) { // a b / 2^32 mod p
    uint64_t t = (uint64_t)a * b;
    uint32_t m = (uint32_t)t * inverse;
    uint32_t high = (uint32_t)(t >> 32), take = __umulhi(m, p);
    return high >= take ? high - take : high + p - take;
}
template <bool montgomery> __global__ void shares(const uint32_t *__restrict__ terms, uint32_t *out, int n, uint32_t p, uint32_t inverse, uint32_t square) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint32_t x = i + 1, y = 0;
    if (montgomery) x = product(x, square, p, inverse);
#pragma unroll 4
    for (int k = 0; k < 24; ++k) {
        if (montgomery) y = product(y, x, p, inverse);
        else y = (uint32_t)(((uint64_t)y * x) % p);
        y += terms[k];
        if (y >= p) y -= p;
    }
    out[i] = y;
}
template <bool montgomery> static Step secret() {
    const int n = 8 << 20;
    const uint32_t p = 2147483629u;
    uint32_t inverse = 1;
    for (int k = 0; k < 5; ++k) inverse *= 2 - p * inverse;
    uint64_t r = ((uint64_t)1 << 32) % p;
    uint32_t square = (uint32_t)(r * r % p);
    std::vector<uint32_t> some(24);
    for (int k = 0; k < 24; ++k) some[k] = (k * 2654435761u) % p;
    uint32_t *terms = copied(some), *out = buffer<uint32_t>(n, 0, 1);
    return [=] {
        for (int k = 0; k < 2; ++k) LAUNCH(shares<montgomery>, n / 256, 256, 0, terms, out, n, p, inverse, square);
    };
}
CASE(secret_ill, "shared-secret") { return secret<false>(); }
CASE(secret_cured, "shared-secret.cured") { return secret<true>(); }

// ------------------------------------------------------------------------------------------------------------------
// unfused-multiply-add. Particles go round a ring of magnets: a rotation and a kick of eight orders a magnet. Rounded product by product "to be
// the same as on the CPU" (a helper): 24 instructions where 12 FMAs do. 8 M x 2 turns x 60 magnets x 26 / 30 T/s = 0.8 ms against 0.45.
template <bool fused> struct Arithmetic {
    static __device__ __forceinline__ float add_product(float a, float b, float c) {
        return fused ? fmaf(a, b, c) : __fadd_rn(__fmul_rn(a, b), c);
    }
};
struct Magnets {
    float cosine, sine, kick[8];
};
template <bool fused> __global__ void __launch_bounds__(256) turns(float2 *beam, int n, Magnets m, int magnets) {
    using A = Arithmetic<fused>;
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * 2;
    if (i >= n) return;
    float4 two = *(float4 *)(beam + i);
    for (int k = 0; k < magnets; ++k) {
        float x0 = A::add_product(two.x, m.cosine, __fmul_rn(two.y, m.sine)), p0 = A::add_product(-two.x, m.sine, __fmul_rn(two.y, m.cosine));
        float x1 = A::add_product(two.z, m.cosine, __fmul_rn(two.w, m.sine)), p1 = A::add_product(-two.z, m.sine, __fmul_rn(two.w, m.cosine));
        float f0 = m.kick[7], f1 = m.kick[7];
#pragma unroll
        for (int o = 6; o >= 0; --o) f0 = A::add_product(f0, x0, m.kick[o]), f1 = A::add_product(f1, x1, m.kick[o]);
        two = make_float4(x0, A::add_product(f0, x0, p0), x1, A::add_product(f1, x1, p1));
    }
    *(float4 *)(beam + i) = two;
}
template <bool fused> static Step ring() {
    const int n = 16 << 20;
    float2 *beam = (float2 *)buffer<float>((size_t)n * 2, -1e-3, 1e-3);
    Magnets m{0.8f, 0.6f, {0, 1e-3f, -2e-3f, 1e-3f, 3e-3f, -1e-3f, 2e-3f, 1e-3f}};
    return [=] { LAUNCH(turns<fused>, n / 512, 256, 0, beam, n, m, 96); };
}
CASE(ring_ill, "synchrotron-ring") { return ring<false>(); }
CASE(ring_cured, "synchrotron-ring.cured") { return ring<true>(); }

// ------------------------------------------------------------------------------------------------------------------
// contended-atomics. Energy of lightning by district (12): an atomic addition of each flash to one of 12 floats, against sums of a thread, then of
// a block (CUB). 12 M additions to one line: ~1 a cycle, 7 ms at worst; the twin reads 96 MB (0.03 ms).
__global__ void strikes_atomic(const float2 *__restrict__ flash, int n, float *district) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float2 f = flash[i];
        atomicAdd(district + min((int)(f.x * 12.f), 11), f.y * f.y);
    }
}
__global__ void __launch_bounds__(256) strikes_reduced(const float2 *__restrict__ flash, int n, float *district) {
    using Reduce = cub::BlockReduce<float, 256>;
    __shared__ typename Reduce::TempStorage scratch;
    float mine[12] = {};
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float2 f = flash[i];
        int at = min((int)(f.x * 12.f), 11);
#pragma unroll
        for (int k = 0; k < 12; ++k) mine[k] += at == k ? f.y * f.y : 0.f;
    }
#pragma unroll
    for (int k = 0; k < 12; ++k) {
        float sum = Reduce(scratch).Sum(mine[k]);
        if (threadIdx.x == 0) atomicAdd(district + k, sum);
        __syncthreads();
    }
}
static Step lightning(bool reduced) {
    const int n = 12 << 20;
    float2 *flash = (float2 *)buffer<float>((size_t)n * 2);
    float *district = buffer<float>(16, 0, 0);
    float4 *cloud = (float4 *)buffer<float>(64 << 20), *rain = (float4 *)buffer<float>(64 << 20);
    return [=] {
        LAUNCH(blend, 2112, 256, 0, cloud, rain, (size_t)16 << 20, 0.1f);
        if (reduced) LAUNCH(strikes_reduced, 528, 256, 0, flash, n, district);
        else LAUNCH(strikes_atomic, 1056, 256, 0, flash, n, district);
    };
}
CASE(lightning_ill, "lightning-strikes") { return lightning(false); }
CASE(lightning_cured, "lightning-strikes.cured") { return lightning(true); }

// ------------------------------------------------------------------------------------------------------------------
// barriers. Running totals within 1024 readings of each meter: ten doubling steps, two barriers each, blocks of 1024; the twin scans by warps,
// four readings a thread, one barrier. 48 K blocks / 264 x ~2400 cycles = 0.25 ms at least, against DRAM's 0.09 ms. Two rounds.
__global__ void __launch_bounds__(1024) running(const float *__restrict__ in, float *out) {
    __shared__ float line[1024];
    size_t at = blockIdx.x * (size_t)1024 + threadIdx.x;
    line[threadIdx.x] = in[at];
    __syncthreads();
    for (int step = 1; step < 1024; step *= 2) {
        float left = threadIdx.x >= step ? line[threadIdx.x - step] : 0.f;
        __syncthreads();
        line[threadIdx.x] += left;
        __syncthreads();
    }
    out[at] = line[threadIdx.x];
}
__global__ void __launch_bounds__(256) running_by_warps(const float4 *__restrict__ in, float4 *out) {
    __shared__ float warps[8];
    cg::thread_block_tile<32> tile = cg::tiled_partition<32>(cg::this_thread_block());
    size_t at = blockIdx.x * (size_t)256 + threadIdx.x;
    float4 x = in[at];
    x.y += x.x, x.z += x.y, x.w += x.z;
    float sum = x.w;
    for (int o = 1; o < 32; o *= 2) {
        float left = tile.shfl_up(sum, o);
        if (tile.thread_rank() >= o) sum += left;
    }
    if (tile.thread_rank() == 31) warps[threadIdx.x / 32] = sum;
    __syncthreads();
    float before = sum - x.w;
    for (int k = 0; k < threadIdx.x / 32; ++k) before += warps[k];
    out[at] = make_float4(x.x + before, x.y + before, x.z + before, x.w + before);
}
template <bool doubling> static Step meters() {
    const int blocks = 48 << 10;
    float *in = buffer<float>((size_t)blocks * 1024), *out = buffer<float>((size_t)blocks * 1024);
    return [=] {
        for (int k = 0; k < 2; ++k)
            if (doubling) LAUNCH(running, blocks, 1024, 0, in, out);
            else LAUNCH(running_by_warps, blocks, 256, 0, (const float4 *)in, (float4 *)out);
    };
}
CASE(meters_ill, "gas-meters") { return meters<true>(); }
CASE(meters_cured, "gas-meters.cured") { return meters<false>(); }

// ------------------------------------------------------------------------------------------------------------------
// tail-wave. 144 members of an ensemble of storms, a block of 1024 threads each, of which one fits on a SM (64 registers): 132, then 12. The twin
// has a sixteenth of a member a block (64 threads): 2304 blocks, all resident, at most 18 a SM, against 32 sixteenths' time.
struct Storm {
    float x, y, u, v;
};
template <int threads> __global__ void __launch_bounds__(threads, 1024 / threads) storms(const float *__restrict__ start, float *end, int steps, int parts) {
    int member = blockIdx.x / parts, part = blockIdx.x % parts;
    Storm s[8];
    size_t first = ((size_t)member * parts + part) * threads * 8;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        float f = start[first + k * threads + threadIdx.x];
        s[k] = {f, 1 - f, 0.1f * f, 0.2f};
    }
    float pull = 0.01f + 1e-5f * member, drag = 0.999f;
    for (int t = 0; t < steps; ++t)
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            s[k].u = fmaf(s[k].u, drag, -pull * s[k].x), s[k].v = fmaf(s[k].v, drag, -pull * s[k].y);
            s[k].x = fmaf(s[k].u, 0.05f, s[k].x), s[k].y = fmaf(s[k].v, 0.05f, s[k].y);
        }
#pragma unroll
    for (int k = 0; k < 8; ++k) end[first + k * threads + threadIdx.x] = s[k].x + s[k].y;
}
template <int threads> static Step ensemble() {
    const int members = 144, parts = 1024 / threads;
    float *start = buffer<float>((size_t)members * 8192), *end = buffer<float>((size_t)members * 8192);
    return [=] { LAUNCH(storms<threads>, members * parts, threads, 0, start, end, 1600, parts); };
}
CASE(storms_ill, "storm-ensemble") { return ensemble<1024>(); }
CASE(storms_cured, "storm-ensemble.cured") { return ensemble<64>(); }

// ------------------------------------------------------------------------------------------------------------------
// too-few-blocks. Loudness and peak of twelve microphones, 16 M readings each: a block a microphone (12 SMs x ~100 GB/s = 1.2 TB/s at most), against 64
// blocks each (0.8 GB: 0.18 ms).
__global__ void __launch_bounds__(1024) loudness(const float4 *__restrict__ sound, size_t each, float *power, int *peak) {
    size_t part = each / gridDim.x;
    const float4 *mine = sound + blockIdx.y * each + blockIdx.x * part;
    float sum = 0, top = 0;
#pragma unroll 4
    for (size_t i = threadIdx.x; i < part; i += 1024) {
        float4 s = mine[i];
        sum += s.x * s.x + s.y * s.y + s.z * s.z + s.w * s.w;
        top = fmaxf(fmaxf(top, fmaxf(fabsf(s.x), fabsf(s.y))), fmaxf(fabsf(s.z), fabsf(s.w)));
    }
    __shared__ int highest;
    if (threadIdx.x == 0) highest = 0;
    __syncthreads();
    int bits = __reduce_max_sync(~0u, __float_as_int(top)); // of floats that are not negative
    if (threadIdx.x % 32 == 0) atomicMax(&highest, bits);
    sum = block_sum<1024>(sum);
    if (threadIdx.x == 0) atomicAdd(power + blockIdx.y, sum), atomicMax(peak + blockIdx.y, highest);
}
static Step microphones(int parts) {
    const size_t each = 4 << 20;
    float4 *sound = (float4 *)buffer<float>(each * 12 * 4, -1, 1);
    float *power = buffer<float>(12, 0, 0);
    int *peak = buffer<int>(12, 0, 0);
    return [=] { LAUNCH(loudness, dim3(parts, 12), 1024, 0, sound, each, power, peak); };
}
CASE(microphones_ill, "organ-microphones") { return microphones(1); }
CASE(microphones_cured, "organ-microphones.cured") { return microphones(64); }

// ------------------------------------------------------------------------------------------------------------------
// unequal-blocks. A sparse product with a power law's rows (20000 rows, 40 M entries: the longest has 3.8 M, half have under 400): a block a row,
// against pieces of at most 4096 entries. 320 MB = 0.08 ms by DRAM; the longest row alone: 30 MB by one SM, 0.5 ms and more.
__device__ inline float dot_range(const int *__restrict__ column, const float *__restrict__ value, const float *__restrict__ x, int begin, int end) {
    float sum = 0;
#pragma unroll 4
    for (int k = begin + threadIdx.x; k < end; k += 256) sum = fmaf(value[k], __ldg(x + column[k]), sum);
    return sum;
}
__global__ void __launch_bounds__(256) cite_rows(const int *__restrict__ starts, const int *__restrict__ column, const float *__restrict__ value, const float *__restrict__ x, float *y) {
    float sum = block_sum<256>(dot_range(column, value, x, starts[blockIdx.x], starts[blockIdx.x + 1]));
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
__global__ void __launch_bounds__(256) cite_pieces(const int3 *__restrict__ pieces, const int *__restrict__ column, const float *__restrict__ value, const float *__restrict__ x, float *y) {
    int3 piece = pieces[blockIdx.x];
    float sum = block_sum<256>(dot_range(column, value, x, piece.y, piece.z));
    if (threadIdx.x == 0) atomicAdd(y + piece.x, sum);
}
static Step citations(bool pieces) {
    const int rows = 20000, nodes = 1 << 20;
    std::vector<int> starts(rows + 1);
    std::vector<int3> parts;
    for (int r = 0; r < rows; ++r) {
        int rank = (int)((r * 7919LL + 11) % rows), degree = 16 + (int)(3.8e6 / (rank + 1));
        starts[r + 1] = starts[r] + degree;
        for (int k = starts[r]; k < starts[r + 1]; k += 4096) parts.push_back(make_int3(r, k, std::min(k + 4096, starts[r + 1])));
    }
    size_t entries = starts[rows];
    int *column = buffer<int>(entries, 0, nodes), *start = copied(starts);
    float *value = buffer<float>(entries), *x = buffer<float>(nodes), *y = buffer<float>(rows);
    int3 *piece = copied(parts);
    int count = (int)parts.size();
    return [=] {
        if (!pieces) LAUNCH(cite_rows, rows, 256, 0, start, column, value, x, y);
        else {
            CHECK(cudaMemsetAsync(y, 0, rows * sizeof(float)));
            LAUNCH(cite_pieces, count, 256, 0, piece, column, value, x, y);
        }
    };
}
CASE(citations_ill, "citations") { return citations(false); }
CASE(citations_cured, "citations.cured") { return citations(true); }

// ------------------------------------------------------------------------------------------------------------------
// occupancy-registers. Equation of state: a search of 22 dependent reads in a table of 16 MB (L2), the lanes of a warp nearly alike. A path that is
// almost never taken (a fit of 11 x 11 values in registers) takes the kernel to ~170 registers: 11 warps a SM; the twin queues those cells for a second
// kernel. 256 K warps / 132 x ~5000 cycles / 11 warps = 0.9 M cycles; with 64 warps 0.2 M.
__device__ inline float fitted(const float *__restrict__ table, int at, float x) {
    float a[11][11], b[11];
#pragma unroll
    for (int i = 0; i < 11; ++i) {
        b[i] = table[at + 200 + i];
#pragma unroll
        for (int j = 0; j < 11; ++j) a[i][j] = table[at + i * 13 + j] + (i == j ? 12.f : 0.f);
    }
#pragma unroll
    for (int k = 0; k < 11; ++k) {
        float scale = __fdividef(1.f, a[k][k]);
#pragma unroll
        for (int i = k + 1; i < 11; ++i) {
            float f = a[i][k] * scale;
            b[i] = fmaf(-f, b[k], b[i]);
#pragma unroll
            for (int j = k + 1; j < 11; ++j) a[i][j] = fmaf(-f, a[k][j], a[i][j]);
        }
    }
    float sum = 0;
#pragma unroll
    for (int k = 10; k >= 0; --k) sum = fmaf(sum, x, b[k] / a[k][k]);
    return sum;
}
__device__ inline int found(const float *__restrict__ table, int n, float x) {
    int low = 0;
#pragma unroll 1
    for (int half = n / 2; half; half /= 2)
        if (table[low + half] <= x) low += half;
    return low;
}
template <bool queued> __global__ void __launch_bounds__(128) state(const float *__restrict__ table, int n, float *out, int cells, float rare, int *queue) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= cells) return;
    float x = hashed(i / 32) * 2.3283064e-10f + (i % 32) * 1e-7f;
    int at = found(table, n, x);
    float result = table[at] * x + 1.f;
    if (x > rare) {
        if (queued) queue[1 + atomicAdd(queue, 1)] = i;
        else result = fitted(table, min(at, n - 512), x);
    }
    out[i] = result;
}
__global__ void state_rare(const float *__restrict__ table, int n, float *out, const int *queue) {
    for (int k = threadIdx.x; k < queue[0]; k += blockDim.x) {
        int i = queue[1 + k];
        float x = hashed(i / 32) * 2.3283064e-10f + (i % 32) * 1e-7f;
        out[i] = fitted(table, min(found(table, n, x), n - 512), x);
    }
}
__global__ void ascending(float *table, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) table[i] = (float)i / n;
}
template <bool queued> static Step stars() {
    const int n = 4 << 20, cells = 16 << 20;
    float *table = buffer<float>(n), *out = buffer<float>(cells);
    int *queue = buffer<int>(cells + 1, 0, 0);
    ascending<<<n / 256, 256>>>(table, n);
    float rare = 0.999999f;
    return [=] {
        if (queued) CHECK(cudaMemsetAsync(queue, 0, sizeof(int)));
        LAUNCH(state<queued>, cells / 128, 128, 0, table, n, out, cells, rare, queue);
        if (queued) LAUNCH(state_rare, 1, 64, 0, table, n, out, queue);
    };
}
CASE(stars_ill, "star-interiors") { return stars<false>(); }
CASE(stars_cured, "star-interiors.cured") { return stars<true>(); }

// ------------------------------------------------------------------------------------------------------------------
// occupancy-shared-memory. Peaks of spectra: a block of 128 goes through its spectrum by tiles of 128 with neighbours. Shared memory is taken for the longest
// spectrum there might be (72 KB: three blocks a SM, 12 warps), a tile is used. A load of 512 B a block and ~1100 cycles: 2.9 M cycles; the twin: 0.6 M.
__global__ void __launch_bounds__(128) peaks(const float *__restrict__ spectra, int length, float *out) {
    extern __shared__ float line[];
    const float *mine = spectra + (size_t)blockIdx.x * length;
    float sum = 0;
    for (int at = 0; at < length; at += 128) {
        line[threadIdx.x] = mine[at + threadIdx.x];
        __syncthreads();
        float x = line[threadIdx.x];
        bool top = true;
#pragma unroll
        for (int k = 1; k <= 3; ++k) top = top && x >= line[threadIdx.x + k & 127] && x > line[threadIdx.x - k & 127];
        if (top) sum += x;
        __syncthreads();
    }
    sum = block_sum<128>(sum);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
static Step digests(int longest) {
    const int spectra = 16 << 10, length = 8192;
    float *data = buffer<float>((size_t)spectra * length), *out = buffer<float>(spectra);
    int bytes = longest * (int)sizeof(float);
    CHECK(cudaFuncSetAttribute(peaks, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    return [=] { LAUNCH(peaks, spectra, 128, bytes, data, length, out); };
}
CASE(digests_ill, "peptide-digests") { return digests(18432); }
CASE(digests_cured, "peptide-digests.cured") { return digests(128); }

// ------------------------------------------------------------------------------------------------------------------
// occupancy-block-size. Streams of records interleaved by 32: a warp hops from header to header (a header tells how long the record is). Blocks of 32:
// 32 warps a SM; the twin's blocks of 256: 64 warps. 256 warps a SM x 114 hops x ~750 cycles / 32 = 0.7 M cycles against 0.35 M.
__global__ void hop(const int *__restrict__ tapes, int groups, int length, int *records) {
    int group = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (group >= groups) return;
    const int *tape = tapes + (size_t)group * length * 32 + threadIdx.x % 32;
    int at = 0, sum = 0;
#pragma unroll 1
    while (at < length) {
        int header = __ldcs(tape + at * 32);
        at += 1 + (header & 7);
        sum += header >> 3;
    }
    records[group * 32 + threadIdx.x % 32] = sum;
}
__global__ void write_headers(int *tapes, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        tapes[i] = (hashed((uint32_t)(i / 32)) & 7) | (int)(i & 0xff) << 3;
}
static Step tapes(int block) {
    const int groups = 132 * 192, length = 512;
    size_t n = (size_t)groups * length * 32;
    int *words = buffer<int>(n, 0, 1), *records = buffer<int>(groups * 32, 0, 1);
    write_headers<<<2112, 256>>>(words, n);
    return [=] {
        for (int k = 0; k < 2; ++k) LAUNCH(hop, groups / (block / 32), block, 0, words, groups, length, records);
    };
}
CASE(tapes_ill, "interleaved-tapes") { return tapes(32); }
CASE(tapes_cured, "interleaved-tapes.cured") { return tapes(256); }

// ------------------------------------------------------------------------------------------------------------------
// dependent-chain. Virial series: 16896 states (a warp a scheduler), 32 gases of 4096 terms by Horner: an FMA waits for the one before (4 cycles).
// 131 K x 4 cycles = 0.3 ms; the twin has four chains in the fourth power of x: a quarter. Rounds of 4.
template <int chains> __global__ void __launch_bounds__(128) series(const float4 *__restrict__ terms, int count, int gases, float *out) {
    __shared__ float4 some[1024];
    float x = 0.9f + 0.1f * (blockIdx.x * 128 + threadIdx.x) / (gridDim.x * 128), x2 = x * x, x4 = x2 * x2, total = 0;
    for (int gas = 0; gas < gases; ++gas) {
        __syncthreads();
        for (int k = threadIdx.x; k < count / 4; k += 128) some[k] = terms[gas * (count / 4) + k];
        __syncthreads();
        float a = 0, b = 0, c = 0, d = 0;
#pragma unroll 8
        for (int k = 0; k < count / 4; ++k) {
            float4 t = some[k];
            if (chains == 1) a = fmaf(fmaf(fmaf(fmaf(a, x, t.x), x, t.y), x, t.z), x, t.w);
            else a = fmaf(a, x4, t.x), b = fmaf(b, x4, t.y), c = fmaf(c, x4, t.z), d = fmaf(d, x4, t.w);
        }
        total += chains == 1 ? a : fmaf(fmaf(fmaf(a, x, b), x, c), x, d);
    }
    out[blockIdx.x * 128 + threadIdx.x] = total;
}
template <int chains> static Step virial() {
    const int count = 4096, gases = 64;
    float4 *terms = (float4 *)buffer<float>(count * gases, -1e-3, 1e-3);
    float *out = buffer<float>(132 * 128);
    return [=] {
        for (int k = 0; k < 2; ++k) LAUNCH(series<chains>, 132, 128, 0, terms, count, gases, out);
    };
}
CASE(virial_ill, "virial-series") { return virial<1>(); }
CASE(virial_cured, "virial-series.cured") { return virial<4>(); }

// ------------------------------------------------------------------------------------------------------------------
// instruction-cache. Eight climates (a warp each), each a small system of equations; the time loop is unrolled 256 times ("faster"): eight bodies
// of 86 KB, no two warps of a SM in the same: 16 B an instruction, 64 B a cycle at full rate. The twin unrolls by 4. 16384 x 21 x 2 / scheduler = 0.7 M cycles.
template <int which> __device__ __forceinline__ void climate_step(float &x, float &y, float &z, float &w, float f) {
    constexpr float s = 10.f + which, r = 28.f - which, b = 2.6f + 0.1f * which, h = 1e-3f;
    float dx = s * (y - x), dy = fmaf(x, r - z, -y), dz = fmaf(x, y, -b * z), dw = fmaf(w, -0.3f - 0.1f * which, f * z);
    float mx = fmaf(dx, h, x), my = fmaf(dy, h, y), mz = fmaf(dz, h, z);
    x = fmaf(s * (my - mx), h, x);
    y = fmaf(fmaf(mx, r - mz, -my), h, y);
    z = fmaf(fmaf(mx, my, -b * mz), h, z);
    w = fmaf(dw, h, w);
}
template <int which, int unrolled> __device__ __forceinline__ float climate(float start, int steps, float f) {
    float x = start, y = 1.f + which, z = 20.f, w = 0;
#pragma unroll 1
    for (int t = 0; t < steps; t += unrolled) {
#pragma unroll
        for (int k = 0; k < unrolled; ++k) climate_step<which>(x, y, z, w, f);
    }
    return x + y + z + w;
}
template <int unrolled> __global__ void __launch_bounds__(256) climates(const float *__restrict__ start, float *out, int steps) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float s = start[i], result;
    switch (threadIdx.x / 32) {
    case 0: result = climate<0, unrolled>(s, steps, 0.1f); break;
    case 1: result = climate<1, unrolled>(s, steps, 0.2f); break;
    case 2: result = climate<2, unrolled>(s, steps, 0.3f); break;
    case 3: result = climate<3, unrolled>(s, steps, 0.4f); break;
    case 4: result = climate<4, unrolled>(s, steps, 0.5f); break;
    case 5: result = climate<5, unrolled>(s, steps, 0.6f); break;
    case 6: result = climate<6, unrolled>(s, steps, 0.7f); break;
    default: result = climate<7, unrolled>(s, steps, 0.8f);
    }
    out[i] = result;
}
template <int unrolled> static Step attractors() {
    const int blocks = 132;
    float *start = buffer<float>(blocks * 256), *out = buffer<float>(blocks * 256);
    return [=] { LAUNCH(climates<unrolled>, blocks, 256, 0, start, out, 16384); };
}
CASE(attractors_ill, "toy-climates") { return attractors<256>(); }
CASE(attractors_cured, "toy-climates.cured") { return attractors<4>(); }

// ------------------------------------------------------------------------------------------------------------------
// l2-capacity. Sound waves through salt: a derivative of the eighth order along z over planes of 16 MB; plane after plane, so a plane is gone from L2
// before it is read again (9 reads: 8 GB, 1.9 ms). The twin's threads go along z with nine values in registers (1 read: 1.6 GB, 0.4 ms).
constexpr int reach = 4;
__device__ inline float bend(const float (&q)[9]) {
    return 0.0018f * (q[0] + q[8]) - 0.025f * (q[1] + q[7]) + 0.2f * (q[2] + q[6]) - 1.6f * (q[3] + q[5]) + 2.847f * q[4];
}
__global__ void __launch_bounds__(256) salt_planes(const float *__restrict__ p, float *out, int plane, int nz) {
    int at = blockIdx.x * 256 + threadIdx.x, z = blockIdx.y + reach;
    float q[9];
#pragma unroll
    for (int k = 0; k < 9; ++k) q[k] = p[(size_t)(z + k - reach) * plane + at];
    out[(size_t)z * plane + at] = bend(q);
}
__global__ void __launch_bounds__(256) salt_pillars(const float *__restrict__ p, float *out, int plane, int nz) {
    int at = blockIdx.x * 256 + threadIdx.x;
    float q[9];
#pragma unroll
    for (int k = 0; k < 8; ++k) q[k] = p[(size_t)k * plane + at];
#pragma unroll 8
    for (int z = reach; z < nz - reach; ++z) {
        q[8] = p[(size_t)(z + reach) * plane + at];
        out[(size_t)z * plane + at] = bend(q);
#pragma unroll
        for (int k = 0; k < 8; ++k) q[k] = q[k + 1];
    }
}
static Step salt(bool pillars) {
    const int plane = 2048 * 2048, nz = 64;
    float *p = buffer<float>((size_t)plane * nz, -1, 1), *out = buffer<float>((size_t)plane * nz);
    return [=] {
        if (pillars) LAUNCH(salt_pillars, plane / 256, 256, 0, p, out, plane, nz);
        else LAUNCH(salt_planes, dim3(plane / 256, nz - 8), 256, 0, p, out, plane, nz);
    };
}
CASE(salt_ill, "salt-dome") { return salt(false); }
CASE(salt_cured, "salt-dome.cured") { return salt(true); }

// ------------------------------------------------------------------------------------------------------------------
// tensor-cores-unused. Likeness of fingerprints: half precision, 4096 x 4096 x 1024 by tiles and FMA (34 GFLOP: 2 ms and more), against WMMA.
__global__ void __launch_bounds__(256) alike_fma(const half *__restrict__ a, const half *__restrict__ b, float *c, int n, int depth) {
    __shared__ float ta[16][65], tb[16][65];
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    float sum[4][4] = {};
    for (int k0 = 0; k0 < depth; k0 += 16) {
        for (int e = threadIdx.x; e < 1024; e += 256) {
            int row = e / 16, k = e % 16;
            ta[k][row] = __half2float(a[(size_t)(blockIdx.y * 64 + row) * depth + k0 + k]);
            tb[k][row] = __half2float(b[(size_t)(blockIdx.x * 64 + row) * depth + k0 + k]);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k)
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) sum[i][j] = fmaf(ta[k][ty + 16 * i], tb[k][tx + 16 * j], sum[i][j]);
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) c[(size_t)(blockIdx.y * 64 + ty + 16 * i) * n + blockIdx.x * 64 + tx + 16 * j] = sum[i][j];
}
__global__ void __launch_bounds__(256) alike_wmma(const half *__restrict__ a, const half *__restrict__ b, float *c, int n, int depth) {
    using namespace nvcuda::wmma;
    __shared__ half ta[128][40], tb[128][40];
    int warp = threadIdx.x / 32, wy = warp / 2, wx = warp % 2;
    fragment<accumulator, 16, 16, 16, float> sum[2][4];
    for (auto &row : sum)
        for (auto &one : row) fill_fragment(one, 0.f);
    for (int k0 = 0; k0 < depth; k0 += 32) {
        for (int e = threadIdx.x; e < 128 * 4; e += 256) {
            int row = e / 4, part = e % 4 * 8;
            *(uint4 *)&ta[row][part] = *(const uint4 *)(a + (size_t)(blockIdx.y * 128 + row) * depth + k0 + part);
            *(uint4 *)&tb[row][part] = *(const uint4 *)(b + (size_t)(blockIdx.x * 128 + row) * depth + k0 + part);
        }
        __syncthreads();
        for (int k = 0; k < 32; k += 16) {
            fragment<matrix_a, 16, 16, 16, half, row_major> fa[2];
            fragment<matrix_b, 16, 16, 16, half, col_major> fb[4];
            for (int i = 0; i < 2; ++i) load_matrix_sync(fa[i], &ta[wy * 32 + i * 16][k], 40);
            for (int j = 0; j < 4; ++j) load_matrix_sync(fb[j], &tb[wx * 64 + j * 16][k], 40);
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 4; ++j) mma_sync(sum[i][j], fa[i], fb[j], sum[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
            store_matrix_sync(c + (size_t)(blockIdx.y * 128 + wy * 32 + i * 16) * n + blockIdx.x * 128 + wx * 64 + j * 16, sum[i][j], n, mem_row_major);
}
__global__ void some_bits(half *data, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        data[i] = __float2half(hashed((uint32_t)i) % 5 == 0 ? 1.f : 0.f);
}
static Step fingerprints(bool tensor) {
    const int n = 4096, depth = 1024;
    half *a = (half *)buffer<uint16_t>((size_t)n * depth, 0, 1), *b = (half *)buffer<uint16_t>((size_t)n * depth, 0, 1);
    float *c = buffer<float>((size_t)n * n);
    some_bits<<<1024, 256>>>(a, (size_t)n * depth), some_bits<<<1024, 256>>>(b, (size_t)n * depth);
    return [=] {
        if (tensor) LAUNCH(alike_wmma, dim3(n / 128, n / 128), 256, 0, a, b, c, n, depth);
        else LAUNCH(alike_fma, dim3(n / 64, n / 64), 256, 0, a, b, c, n, depth);
    };
}
CASE(fingerprints_ill, "molecular-fingerprints") { return fingerprints(false); }
CASE(fingerprints_cured, "molecular-fingerprints.cured") { return fingerprints(true); }

// ==================================================================================================================
// Healthy.

// dram-bound: rows of 512 bytes of a table of 2 GB, in a random order, summed 16 at a time: a gather, but whole sectors and lines.
__global__ void __launch_bounds__(256) bags(const float4 *__restrict__ table, const int *__restrict__ ids, float4 *out, int count) {
    int bag = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (bag >= count) return;
    int mine = ids[bag * 16 + lane % 16];
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int k = 0; k < 16; ++k) {
        float4 v = table[(size_t)__shfl_sync(~0u, mine, k) * 32 + lane];
        sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
    out[(size_t)bag * 32 + lane] = sum;
}
CASE(bags_well, "item-bags") {
    const int rows = 4 << 20, count = 256 << 10;
    float4 *table = (float4 *)buffer<float>((size_t)rows * 128), *out = (float4 *)buffer<float>((size_t)count * 128);
    int *ids = buffer<int>((size_t)count * 16, 0, rows);
    return [=] { LAUNCH(bags, count / 8, 256, 0, table, ids, out, count); };
}

// compute-bound, FP64 by need: ranges to the moon to a millimetre in 4e11 (double), a series of 400 terms, four ranges a thread.
__global__ void __launch_bounds__(256) moon(const double *__restrict__ terms, int count, double *range) {
    __shared__ double some[512];
    for (int k = threadIdx.x; k < count; k += 256) some[k] = terms[k];
    __syncthreads();
    size_t i = (blockIdx.x * (size_t)256 + threadIdx.x) * 4;
    double t[4], sum[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) t[k] = 1e-7 * (double)(i + k), sum[k] = 0;
#pragma unroll 4
    for (int j = 0; j < count; ++j)
#pragma unroll
        for (int k = 0; k < 4; ++k) sum[k] = fma(sum[k], t[k], some[j]);
#pragma unroll
    for (int k = 0; k < 4; ++k) range[i + k] = 3.844e11 + sum[k];
}
CASE(moon_well, "lunar-ranging") {
    const int n = 16 << 20, count = 400;
    double *terms = buffer<double>(count, -1, 1), *range = buffer<double>(n);
    return [=] { LAUNCH(moon, n / 1024, 256, 0, terms, count, range); };
}

// occupancy-enough: a block of 512 a SM (25 % of the warps), eight loads of 16 bytes in flight a thread: DRAM is busy all the same.
__global__ void __launch_bounds__(512, 1) whiten(const float4 *__restrict__ noise, float4 *out, size_t n) {
    size_t all = (size_t)gridDim.x * 512;
    for (size_t i = blockIdx.x * (size_t)512 + threadIdx.x; i < n; i += all * 8) {
        float4 v[8];
#pragma unroll
        for (int k = 0; k < 8; ++k) v[k] = i + k * all < n ? __ldcs(noise + i + k * all) : make_float4(0, 0, 0, 0);
#pragma unroll
        for (int k = 0; k < 8; ++k)
            if (i + k * all < n) __stcs(out + i + k * all, make_float4(v[k].x - 0.5f, v[k].y - 0.5f, v[k].z - 0.5f, v[k].w - 0.5f));
    }
}
CASE(whiten_well, "detector-noise") {
    size_t n = (size_t)64 << 20;
    float4 *noise = (float4 *)buffer<float>(n * 4), *out = (float4 *)buffer<float>(n * 4);
    return [=] { LAUNCH(whiten, 132, 512, 0, noise, out, n); };
}

// l2-bound: each block compares its word with a list of 12 MB, each from another place on: 12 GB through L2, which holds the list.
__global__ void __launch_bounds__(256) closest(const float4 *__restrict__ list, int n, const float *__restrict__ words, float *out) {
    float word = words[blockIdx.x], least = 1e9f;
    int at = (int)((long long)blockIdx.x * n / gridDim.x / 256 * 256) + threadIdx.x;
#pragma unroll 8
    for (int k = 0; k < n; k += 256) {
        float4 v = list[at];
        least = fminf(least, fminf(fminf(fabsf(v.x - word), fabsf(v.y - word)), fminf(fabsf(v.z - word), fabsf(v.w - word))));
        at += 256;
        if (at >= n) at -= n;
    }
    for (int o = 16; o; o >>= 1) least = fminf(least, __shfl_xor_sync(~0u, least, o));
    if (threadIdx.x % 32 == 0) out[blockIdx.x * 8 + threadIdx.x / 32] = least;
}
CASE(closest_well, "rhyming-words") {
    const int n = 768 << 10;
    float4 *list = (float4 *)buffer<float>((size_t)n * 4);
    float *words = buffer<float>(1056), *out = buffer<float>(1056 * 8);
    return [=] { LAUNCH(closest, 1056, 256, 0, list, n, words, out); };
}

// compute-bound, FP32: a small network (weights in shared memory, 16 values in registers) evaluated at each sample of a ray; blocks of 64 threads.
__global__ void __launch_bounds__(64) field(const float *__restrict__ weights, const float *__restrict__ samples, float *density, int layers) {
    extern __shared__ float4 stored[]; // [layer][16][4]
    for (int k = threadIdx.x; k < 64 * layers; k += 64) stored[k] = ((const float4 *)weights)[k];
    __syncthreads();
    float h[2][16];
    int i = blockIdx.x * 128 + threadIdx.x;
#pragma unroll
    for (int s = 0; s < 2; ++s)
#pragma unroll
        for (int k = 0; k < 16; ++k) h[s][k] = samples[i + 64 * s] * (k + 1);
#pragma unroll 1
    for (int layer = 0; layer < layers; ++layer) {
        float next[2][16];
        const float4 *w = stored + 64 * layer;
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            float a = 0, b = 0;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                float4 v = w[k * 4 + j];
                a = fmaf(v.x, h[0][4 * j], fmaf(v.y, h[0][4 * j + 1], fmaf(v.z, h[0][4 * j + 2], fmaf(v.w, h[0][4 * j + 3], a))));
                b = fmaf(v.x, h[1][4 * j], fmaf(v.y, h[1][4 * j + 1], fmaf(v.z, h[1][4 * j + 2], fmaf(v.w, h[1][4 * j + 3], b))));
            }
            next[0][k] = fmaxf(a, 0.01f * a), next[1][k] = fmaxf(b, 0.01f * b);
        }
#pragma unroll
        for (int k = 0; k < 16; ++k) h[0][k] = next[0][k], h[1][k] = next[1][k];
    }
    density[i] = h[0][0] + h[0][7], density[i + 64] = h[1][0] + h[1][7];
}
CASE(field_well, "radiance-cache") {
    const int n = 8 << 20;
    float *weights = buffer<float>(256 * 6, -0.3, 0.3), *samples = buffer<float>(n), *density = buffer<float>(n);
    return [=] { LAUNCH(field, n / 128, 64, 6 * 1024, weights, samples, density, 6); };
}

int main(int argc, char **argv) { return run_cases(argc, argv); }
