// Kernels with one illness each, and cured (NAME.cured) or healthy ones. How to run them: harness.h.
#include "harness.h"
#include <cuda_fp16.h>
#include <mma.h>

#define MILLION (1 << 20)

// ---- global memory -------------------------------------------------------------------------------------------------

__global__ void sum_rows(const float *m, float *sums, int rows, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int c = 0; c < columns; ++c) sum += m[(size_t)row * columns + c];
    sums[row] = sum;
}
__global__ void sum_rows_by_warps(const float *m, float *sums, int rows, int columns) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    float sum = 0;
    for (int c = lane; c < columns; c += 32) sum += m[(size_t)row * columns + c];
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (lane == 0) sums[row] = sum;
}
CASE(rows_ill, "row-sums") {
    float *m = buffer<float>(65536 * 1024), *sums = buffer<float>(65536);
    return [=] { LAUNCH(sum_rows, 65536 / 256, 256, 0, m, sums, 65536, 1024); };
}
CASE(rows_cured, "row-sums.cured") {
    float *m = buffer<float>(65536 * 1024), *sums = buffer<float>(65536);
    return [=] { LAUNCH(sum_rows_by_warps, 65536 / 8, 256, 0, m, sums, 65536, 1024); };
}

__global__ void update_weights(const float *in, float *out, int n) {  // a transposition
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) out[(size_t)x * n + y + j] = in[(size_t)(y + j) * n + x];
}
template <int PAD> __global__ void elementwise(const float *in, float *out, int n) {  // a transposition by tiles
    __shared__ float tile[32][32 + PAD];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(size_t)(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) out[(size_t)(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
CASE(transpose_naive, "transpose-naive") {
    float *in = buffer<float>(64 * MILLION), *out = buffer<float>(64 * MILLION);
    return [=] { LAUNCH(update_weights, dim3(256, 256), dim3(32, 8), 0, in, out, 8192); };
}
CASE(transpose_bank, "transpose-tile") {
    float *in = buffer<float>(64 * MILLION), *out = buffer<float>(64 * MILLION);
    return [=] { LAUNCH(elementwise<0>, dim3(256, 256), dim3(32, 8), 0, in, out, 8192); };
}
CASE(transpose_cured, "transpose-tile.cured") {
    float *in = buffer<float>(64 * MILLION), *out = buffer<float>(64 * MILLION);
    return [=] { LAUNCH(elementwise<1>, dim3(256, 256), dim3(32, 8), 0, in, out, 8192); };
}

struct Particle { float x, y, z, vx, vy, vz, mass, charge; };
__global__ void advance(Particle *all, int n, float dt) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) all[i].x += dt * all[i].vx;
}
__global__ void advance_arrays(float *x, const float *vx, int n, float dt) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += dt * vx[i];
}
CASE(aos_ill, "particles") {
    Particle *all = (Particle *)buffer<float>(16 * MILLION * 8);
    return [=] { LAUNCH(advance, 16 * MILLION / 256, 256, 0, all, 16 * MILLION, 0.1f); };
}
CASE(aos_cured, "particles.cured") {
    float *x = buffer<float>(16 * MILLION), *vx = buffer<float>(16 * MILLION);
    return [=] { LAUNCH(advance_arrays, 16 * MILLION / 256, 256, 0, x, vx, 16 * MILLION, 0.1f); };
}

__global__ void look_up(const float *table, const int *index, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = table[index[i]];
}
__global__ void ordered(int *index, int n, int range) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        index[i] = (int)((double)i * range / n);
}
CASE(gather_ill, "look-up") {
    float *table = buffer<float>(96 * MILLION), *out = buffer<float>(24 * MILLION);
    int *index = buffer<int>(24 * MILLION, 0, 96 * MILLION);
    return [=] { LAUNCH(look_up, 24 * MILLION / 256, 256, 0, table, index, out, 24 * MILLION); };
}
CASE(gather_cured, "look-up.cured") {  // the indices sorted
    float *table = buffer<float>(96 * MILLION), *out = buffer<float>(24 * MILLION);
    int *index = buffer<int>(24 * MILLION);
    ordered<<<1024, 256>>>(index, 24 * MILLION, 96 * MILLION);
    return [=] { LAUNCH(look_up, 24 * MILLION / 256, 256, 0, table, index, out, 24 * MILLION); };
}

__global__ void blend(const uint8_t *a, const uint8_t *b, uint8_t *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = (a[i] + b[i]) >> 1;
}
__global__ void blend_words(const uint4 *a, const uint4 *b, uint4 *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint4 p = a[i], q = b[i];
    out[i] = make_uint4(__vhaddu4(p.x, q.x), __vhaddu4(p.y, q.y), __vhaddu4(p.z, q.z), __vhaddu4(p.w, q.w));
}
CASE(narrow_ill, "blend-bytes") {
    uint8_t *a = buffer<uint8_t>(192 * MILLION, 0, 255), *b = buffer<uint8_t>(192 * MILLION, 0, 255);
    uint8_t *out = buffer<uint8_t>(192 * MILLION);
    return [=] { LAUNCH(blend, 192 * MILLION / 256, 256, 0, a, b, out, 192 * MILLION); };
}
CASE(narrow_cured, "blend-bytes.cured") {
    uint8_t *a = buffer<uint8_t>(192 * MILLION, 0, 255), *b = buffer<uint8_t>(192 * MILLION, 0, 255);
    uint8_t *out = buffer<uint8_t>(192 * MILLION);
    return [=] { LAUNCH(blend_words, 12 * MILLION / 256, 256, 0, (uint4 *)a, (uint4 *)b, (uint4 *)out, 12 * MILLION); };
}

__global__ void sweep(const float4 *data, float *out, size_t n, int passes) {  // all of it, again and again
    float sum = 0;
    for (int pass = 0; pass < passes; ++pass)
        for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
            float4 v = data[i];
            sum = fmaf(sum, 0.5f, v.x + v.y + v.z + v.w);
        }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
__global__ void sweep_tiled(const float4 *data, float *out, size_t n, int passes) {  // a part that stays, again and again
    float sum = 0;
    size_t tile = (size_t)gridDim.x * blockDim.x * 4;
    for (size_t begin = 0; begin < n; begin += tile)
        for (int pass = 0; pass < passes; ++pass)
            for (size_t i = begin + blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < min(n, begin + tile);
                 i += (size_t)gridDim.x * blockDim.x) {
                float4 v = __ldcg(&data[i]);
                sum = fmaf(sum, 0.5f, v.x + v.y + v.z + v.w);
            }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
CASE(l2_ill, "sweeps") {
    float *data = buffer<float>(48 * MILLION), *out = buffer<float>(2112 * 256);
    return [=] { LAUNCH(sweep, 132 * 8, 256, 0, (float4 *)data, out, (size_t)12 * MILLION, 6); };
}
CASE(l2_cured, "sweeps.cured") {
    float *data = buffer<float>(48 * MILLION), *out = buffer<float>(2112 * 256);
    return [=] { LAUNCH(sweep_tiled, 132 * 8, 256, 0, (float4 *)data, out, (size_t)12 * MILLION, 6); };
}

__global__ void triad(const float4 *a, const float4 *b, float4 *c, float s, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 p = a[i], q = b[i];
    c[i] = make_float4(p.x + s * q.x, p.y + s * q.y, p.z + s * q.z, p.w + s * q.w);
}
CASE(dram_healthy, "triad") {
    float *a = buffer<float>(64 * MILLION), *b = buffer<float>(64 * MILLION), *c = buffer<float>(64 * MILLION);
    return [=] { LAUNCH(triad, 16 * MILLION / 256, 256, 0, (float4 *)a, (float4 *)b, (float4 *)c, 0.5f, 16 * MILLION); };
}
CASE(l2_healthy, "l2-reads") {  // 16 MB, which L2 holds
    float *data = buffer<float>(4 * MILLION), *out = buffer<float>(2112 * 256);
    return [=] { LAUNCH(sweep, 132 * 8, 256, 0, (float4 *)data, out, (size_t)MILLION, 80); };
}

// ---- shared and local memory ---------------------------------------------------------------------------------------

__global__ void exchange(const float *in, float *out, int rounds) {  // shared memory without conflicts
    __shared__ float s[1024];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * 1024 + t];
    __syncthreads();
    float a = 0, b = 0, c = 0, d = 0;
    for (int r = 0; r < rounds; ++r) {
        a += s[(t + 32 * r) & 1023];
        b += s[(t + 32 * r + 256) & 1023];
        c += s[(t + 32 * r + 512) & 1023];
        d += s[(t + 32 * r + 768) & 1023];
    }
    out[blockIdx.x * 1024 + t] = a + b + c + d;
}
CASE(shared_healthy, "exchange") {
    float *in = buffer<float>(2 * MILLION), *out = buffer<float>(2 * MILLION);
    return [=] { LAUNCH(exchange, 2048, 1024, 0, in, out, 256); };
}

template <int N> __device__ void mixed(const float *in, float *out, int n, int i) {
    float v[N];
#pragma unroll
    for (int k = 0; k < N; ++k) v[k] = in[(i + k * 977) & (n - 1)];
    for (int round = 0; round < 8; ++round) {
#pragma unroll
        for (int k = 0; k < N; ++k) v[k] = fmaf(v[k], v[(k + 7) % N], v[(k + 13) % N]);
    }
    float sum = 0;
#pragma unroll
    for (int k = 0; k < N; ++k) sum += v[k];
    out[i] = sum;
}
__global__ void __launch_bounds__(1024, 2) integrate(const float *in, float *out, int n) {
    mixed<96>(in, out, n, blockIdx.x * blockDim.x + threadIdx.x);
}
__global__ void __launch_bounds__(128) integrate_in_registers(const float *in, float *out, int n) {
    mixed<96>(in, out, n, blockIdx.x * blockDim.x + threadIdx.x);
}
CASE(spill_ill, "many-values") {
    float *in = buffer<float>(MILLION), *out = buffer<float>(MILLION);
    return [=] { LAUNCH(integrate, MILLION / 1024, 1024, 0, in, out, MILLION); };
}
CASE(spill_cured, "many-values.cured") {
    float *in = buffer<float>(MILLION), *out = buffer<float>(MILLION);
    return [=] { LAUNCH(integrate_in_registers, MILLION / 128, 128, 0, in, out, MILLION); };
}

__global__ void count_bins(const uint8_t *in, int *out, int n, int each) {
    int bins[32] = {0}, thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    for (int k = 0; k < each; ++k) bins[in[(size_t)k * threads + thread] & 31] += k;
    int sum = 0;
    for (int b = 0; b < 32; ++b) sum = sum * 31 + bins[b];
    out[thread] = sum;
}
__global__ void count_bins_shared(const uint8_t *in, int *out, int n, int each) {
    __shared__ int bins[32][128];
    int t = threadIdx.x, thread = blockIdx.x * blockDim.x + t, threads = gridDim.x * blockDim.x;
    for (int b = 0; b < 32; ++b) bins[b][t] = 0;
    for (int k = 0; k < each; ++k) bins[in[(size_t)k * threads + thread] & 31][t] += k;
    int sum = 0;
    for (int b = 0; b < 32; ++b) sum = sum * 31 + bins[b][t];
    out[thread] = sum;
}
CASE(local_ill, "own-bins") {
    uint8_t *in = buffer<uint8_t>(128 * MILLION, 0, 255);
    int *out = buffer<int>(MILLION);
    return [=] { LAUNCH(count_bins, 4096, 128, 0, in, out, 128 * MILLION, 256); };
}
CASE(local_cured, "own-bins.cured") {
    uint8_t *in = buffer<uint8_t>(128 * MILLION, 0, 255);
    int *out = buffer<int>(MILLION);
    return [=] { LAUNCH(count_bins_shared, 4096, 128, 0, in, out, 128 * MILLION, 256); };
}

// ---- instructions --------------------------------------------------------------------------------------------------

template <int KIND> __device__ __noinline__ float branch_of(float x, int rounds) {
    uint32_t state = __float_as_uint(x);
    for (int i = 0; i < rounds; ++i) {
        if (KIND % 2) x = fmaf(x, 0.99f + KIND * 0.001f, 0.5f - KIND * 0.01f);
        else state = state * (1664525u + 2 * KIND) + 1013904223u + KIND;
    }
    return x + (state >> 30);
}
template <int SHIFT> __global__ void by_kind(const float *in, float *out, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i];
    switch ((i >> SHIFT) & 7) {
    case 0: x = branch_of<0>(x, rounds); break;
    case 1: x = branch_of<1>(x, rounds); break;
    case 2: x = branch_of<2>(x, rounds); break;
    case 3: x = branch_of<3>(x, rounds); break;
    case 4: x = branch_of<4>(x, rounds); break;
    case 5: x = branch_of<5>(x, rounds); break;
    case 6: x = branch_of<6>(x, rounds); break;
    default: x = branch_of<7>(x, rounds);
    }
    out[i] = x;
}
CASE(divergence_ill, "kinds") {
    float *in = buffer<float>(16 * MILLION), *out = buffer<float>(16 * MILLION);
    return [=] { LAUNCH(by_kind<0>, 16 * MILLION / 256, 256, 0, in, out, 64); };
}
CASE(divergence_cured, "kinds.cured") {
    float *in = buffer<float>(16 * MILLION), *out = buffer<float>(16 * MILLION);
    return [=] { LAUNCH(by_kind<5>, 16 * MILLION / 256, 256, 0, in, out, 64); };
}

__global__ void polynomial(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i], y = x;
#pragma unroll
    for (int k = 0; k < 24; ++k) y = y * x * 0.1234567891 + 0.987654321;
    out[i] = y;
}
__global__ void polynomial_float(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i], y = x;
#pragma unroll
    for (int k = 0; k < 24; ++k) y = y * x * 0.1234567891f + 0.987654321f;
    out[i] = y;
}
CASE(fp64_ill, "polynomial") {
    float *in = buffer<float>(32 * MILLION), *out = buffer<float>(32 * MILLION);
    return [=] { LAUNCH(polynomial, 32 * MILLION / 256, 256, 0, in, out, 32 * MILLION); };
}
CASE(fp64_cured, "polynomial.cured") {
    float *in = buffer<float>(32 * MILLION), *out = buffer<float>(32 * MILLION);
    return [=] { LAUNCH(polynomial_float, 32 * MILLION / 256, 256, 0, in, out, 32 * MILLION); };
}

template <typename T, int CHAINS> __global__ void transpose(const T *in, T *out, int rounds) {  // multiply-adds
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    T x = in[i], v[CHAINS];
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) v[c] = x + c;
    for (int r = 0; r < rounds; ++r) {
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) v[c] = v[c] * x + (T)0.25;
    }
    T sum = 0;
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) sum += v[c];
    out[i] = sum;
}
CASE(fma_healthy, "multiply-adds") {
    float *in = buffer<float>(MILLION), *out = buffer<float>(MILLION);
    return [=] { LAUNCH((transpose<float, 8>), 132 * 16, 256, 0, in, out, 2048); };
}
CASE(fma64_healthy, "multiply-adds-double") {  // double data, on purpose
    double *in = buffer<double>(MILLION), *out = buffer<double>(MILLION);
    return [=] { LAUNCH((transpose<double, 8>), 132 * 8, 256, 0, in, out, 1024); };
}
CASE(few_warps_healthy, "few-warps") {  // 8 warps a SM, and no more would help
    float *in = buffer<float>(MILLION), *out = buffer<float>(MILLION);
    return [=] { LAUNCH((transpose<float, 16>), 132, 256, 0, in, out, 8192); };
}
CASE(chain_ill, "one-chain") {  // 4 warps a SM, one chain each
    float *in = buffer<float>(MILLION), *out = buffer<float>(MILLION);
    return [=] { LAUNCH((transpose<float, 1>), 132, 128, 0, in, out, 65536); };
}
CASE(chain_cured, "one-chain.cured") {  // the same number of operations in 8 chains
    float *in = buffer<float>(MILLION), *out = buffer<float>(MILLION);
    return [=] { LAUNCH((transpose<float, 8>), 132, 128, 0, in, out, 8192); };
}

template <bool FUSED> __global__ void series(const float *in, float *out, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i], v[8];
#pragma unroll
    for (int c = 0; c < 8; ++c) v[c] = x + c;
    for (int r = 0; r < rounds; ++r) {
#pragma unroll
        for (int c = 0; c < 8; ++c) v[c] = FUSED ? fmaf(v[c], x, 0.25f) : __fadd_rn(__fmul_rn(v[c], x), 0.25f);
    }
    float sum = 0;
#pragma unroll
    for (int c = 0; c < 8; ++c) sum += v[c];
    out[i] = sum;
}
CASE(unfused_ill, "series") {
    float *in = buffer<float>(MILLION), *out = buffer<float>(MILLION);
    return [=] { LAUNCH(series<false>, 132 * 16, 256, 0, in, out, 2048); };
}
CASE(unfused_cured, "series.cured") {
    float *in = buffer<float>(MILLION), *out = buffer<float>(MILLION);
    return [=] { LAUNCH(series<true>, 132 * 16, 256, 0, in, out, 2048); };
}

__global__ void waves(const float *in, float *out, int terms) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i], sum = 0;
    for (int k = 1; k <= terms; ++k) sum += __sinf(k * x) * 0.5f;
    out[i] = sum;
}
__global__ void waves_by_rotation(const float *in, float *out, int terms) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i], sum = 0, s1, c1, s, c;
    __sincosf(x, &s1, &c1);
    s = s1, c = c1;
    for (int k = 1; k <= terms; ++k) {
        sum += s * 0.5f;
        float next = fmaf(s, c1, c * s1);
        c = fmaf(c, c1, -s * s1);
        s = next;
    }
    out[i] = sum;
}
CASE(special_ill, "waves") {
    float *in = buffer<float>(8 * MILLION), *out = buffer<float>(8 * MILLION);
    return [=] { LAUNCH(waves, 8 * MILLION / 256, 256, 0, in, out, 64); };
}
CASE(special_cured, "waves.cured") {
    float *in = buffer<float>(8 * MILLION), *out = buffer<float>(8 * MILLION);
    return [=] { LAUNCH(waves_by_rotation, 8 * MILLION / 256, 256, 0, in, out, 64); };
}

__global__ void permute(const float *in, float *out, int n, int a, int b, int c, int d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int w = i % d, z = i / d % c, y = i / (d * c) % b, x = i / (d * c * b) % a;
    int u = (x + y + z + w) % a, v = (x * 3 + i) / a % b;
    out[i] = in[i] + (float)(u + v + ((y * c + z) * d + w) % b);
}
__global__ void permute_by_shifts(const float *in, float *out, int n, int a, int b, int c, int d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int w = i & ((1 << d) - 1), z = i >> d & ((1 << c) - 1), y = i >> (d + c) & ((1 << b) - 1);
    int x = i >> (d + c + b) & ((1 << a) - 1);
    int u = (x + y + z + w) & ((1 << a) - 1), v = (x * 3 + i) >> a & ((1 << b) - 1);
    out[i] = in[i] + (float)(u + v + (((y << c) + z << d) + w & ((1 << b) - 1)));
}
CASE(division_ill, "indices") {
    float *in = buffer<float>(64 * MILLION), *out = buffer<float>(64 * MILLION);
    return [=] { LAUNCH(permute, 64 * MILLION / 256, 256, 0, in, out, 64 * MILLION, 64, 128, 64, 128); };
}
CASE(division_cured, "indices.cured") {
    float *in = buffer<float>(64 * MILLION), *out = buffer<float>(64 * MILLION);
    return [=] { LAUNCH(permute_by_shifts, 64 * MILLION / 256, 256, 0, in, out, 64 * MILLION, 6, 7, 6, 7); };
}

template <int KIND, bool UNROLLED> __device__ __noinline__ float long_body(float x) {
    float y = x + KIND;
#pragma unroll(UNROLLED ? 8 : 1)
    for (int part = 0; part < 8; ++part) {
        float p = y, q = x + part * (1.0f + KIND);
#pragma unroll
        for (int k = 200; k; --k) {  // statements with constants of their own
            float next = fmaf(p, 0.5f + k * 1e-4f, q);
            q = fmaf(q, 0.25f + k * 3e-5f, p);
            p = next;
        }
        y = p + q;
    }
    return y;
}
template <bool UNROLLED> __global__ void chemistry(const float *in, float *out, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i];
    for (int r = 0; r < rounds; ++r) {
        switch ((r + threadIdx.x / 32 + blockIdx.x) % 4) {  // the warps of a SM are in different bodies
        case 0: x = long_body<0, UNROLLED>(x); break;
        case 1: x = long_body<1, UNROLLED>(x); break;
        case 2: x = long_body<2, UNROLLED>(x); break;
        default: x = long_body<3, UNROLLED>(x);
        }
    }
    out[i] = x;
}
CASE(icache_ill, "long-bodies") {
    float *in = buffer<float>(MILLION), *out = buffer<float>(MILLION);
    return [=] { LAUNCH(chemistry<true>, 132 * 8, 128, 0, in, out, 16); };
}
CASE(icache_cured, "long-bodies.cured") {
    float *in = buffer<float>(MILLION), *out = buffer<float>(MILLION);
    return [=] { LAUNCH(chemistry<false>, 132 * 8, 128, 0, in, out, 16); };
}

// ---- matrix products -----------------------------------------------------------------------------------------------

__global__ void multiply(const half *a, const half *b, float *c, int n) {  // tiles of 64 x 64, 4 x 4 a thread
    __shared__ float left[16][64 + 4], right[16][64];
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16, row = blockIdx.y * 64, column = blockIdx.x * 64;
    float sum[4][4] = {};
    for (int k = 0; k < n; k += 16) {
        for (int e = threadIdx.x; e < 1024; e += 256) {
            left[e % 16][e / 16] = __half2float(a[(size_t)(row + e / 16) * n + k + e % 16]);
            right[e / 64][e % 64] = __half2float(b[(size_t)(k + e / 64) * n + column + e % 64]);
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < 16; ++j) {
            float4 p = *(float4 *)&left[j][ty * 4], q = *(float4 *)&right[j][tx * 4];
            float u[4] = {p.x, p.y, p.z, p.w}, v[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
            for (int y = 0; y < 4; ++y)
#pragma unroll
                for (int x = 0; x < 4; ++x) sum[y][x] = fmaf(u[y], v[x], sum[y][x]);
        }
        __syncthreads();
    }
    for (int y = 0; y < 4; ++y)
        for (int x = 0; x < 4; ++x) c[(size_t)(row + ty * 4 + y) * n + column + tx * 4 + x] = sum[y][x];
}
__global__ void multiply_tensor(const half *a, const half *b, float *c, int n) {  // 64 x 64 by 4 warps
    using namespace nvcuda::wmma;
    __shared__ half left[64][32 + 8], right[32][64 + 8];
    int warp = threadIdx.x / 32, row = blockIdx.y * 64, column = blockIdx.x * 64;
    fragment<accumulator, 16, 16, 16, float> sum[4];
    for (auto &part : sum) fill_fragment(part, 0.0f);
    for (int k = 0; k < n; k += 32) {
        for (int e = threadIdx.x; e < 256; e += 128) {
            *(uint4 *)&left[e / 4][e % 4 * 8] = *(const uint4 *)&a[(size_t)(row + e / 4) * n + k + e % 4 * 8];
            *(uint4 *)&right[e / 8][e % 8 * 8] = *(const uint4 *)&b[(size_t)(k + e / 8) * n + column + e % 8 * 8];
        }
        __syncthreads();
        for (int j = 0; j < 32; j += 16) {
            fragment<matrix_a, 16, 16, 16, half, row_major> p;
            load_matrix_sync(p, &left[warp * 16][j], 32 + 8);
            for (int x = 0; x < 4; ++x) {
                fragment<matrix_b, 16, 16, 16, half, row_major> q;
                load_matrix_sync(q, &right[j][x * 16], 64 + 8);
                mma_sync(sum[x], p, q, sum[x]);
            }
        }
        __syncthreads();
    }
    for (int x = 0; x < 4; ++x)
        store_matrix_sync(&c[(size_t)(row + warp * 16) * n + column + x * 16], sum[x], n, mem_row_major);
}
CASE(tensor_ill, "half-product") {
    half *a = (half *)buffer<uint16_t>(4 * MILLION, 0x3000, 0x3c00), *b = (half *)buffer<uint16_t>(4 * MILLION, 0x3000, 0x3c00);
    float *c = buffer<float>(4 * MILLION);
    return [=] { LAUNCH(multiply, dim3(32, 32), 256, 0, a, b, c, 2048); };
}
CASE(tensor_cured, "half-product.cured") {
    half *a = (half *)buffer<uint16_t>(4 * MILLION, 0x3000, 0x3c00), *b = (half *)buffer<uint16_t>(4 * MILLION, 0x3000, 0x3c00);
    float *c = buffer<float>(4 * MILLION);
    return [=] { LAUNCH(multiply_tensor, dim3(32, 32), 128, 0, a, b, c, 2048); };
}
__global__ void tensor_rounds(const half *in, float *out, int rounds) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, half, row_major> p;
    fragment<matrix_b, 16, 16, 16, half, row_major> q;
    fragment<accumulator, 16, 16, 16, float> sum[4];
    load_matrix_sync(p, in, 16);
    load_matrix_sync(q, in + 256, 16);
    for (auto &part : sum) fill_fragment(part, 0.0f);
    for (int r = 0; r < rounds; ++r)
        for (auto &part : sum) mma_sync(part, p, q, part);
    for (auto &part : sum) store_matrix_sync(&out[(blockIdx.x * blockDim.x + threadIdx.x) / 32 * 256], part, 16, mem_row_major);
}
CASE(tensor_healthy, "tensor-rounds") {
    half *in = (half *)buffer<uint16_t>(512, 0x3000, 0x3c00);
    float *out = buffer<float>(132 * 4 * 8 * 256);
    return [=] { LAUNCH(tensor_rounds, 132 * 4, 256, 0, in, out, 2000); };
}

// ---- atomics, barriers, the grid -----------------------------------------------------------------------------------

__global__ void histogram(const uint8_t *in, int *bins, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[in[i] & 7], 1);
}
__global__ void histogram_shared(const uint8_t *in, int *bins, int n) {
    __shared__ int own[8][8];
    if (threadIdx.x < 64) own[threadIdx.x / 8][threadIdx.x % 8] = 0;
    __syncthreads();
    int counts[8] = {0};
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int bin = in[i] & 7;
#pragma unroll
        for (int b = 0; b < 8; ++b) counts[b] += bin == b;
    }
#pragma unroll
    for (int b = 0; b < 8; ++b) atomicAdd(&own[threadIdx.x / 32][b], counts[b]);
    __syncthreads();
    if (threadIdx.x < 8) {
        int sum = 0;
        for (int w = 0; w < 8; ++w) sum += own[w][threadIdx.x];
        atomicAdd(&bins[threadIdx.x], sum);
    }
}
CASE(atomics_ill, "histogram") {
    uint8_t *in = buffer<uint8_t>(16 * MILLION, 0, 255);
    int *bins = buffer<int>(8);
    return [=] { LAUNCH(histogram, 132 * 8, 256, 0, in, bins, 16 * MILLION); };
}
CASE(atomics_cured, "histogram.cured") {
    uint8_t *in = buffer<uint8_t>(16 * MILLION, 0, 255);
    int *bins = buffer<int>(8);
    return [=] { LAUNCH(histogram_shared, 132 * 8, 256, 0, in, bins, 16 * MILLION); };
}

__global__ void reduce_tree(const float *in, float *out, int rounds) {
    __shared__ float s[1024];
    int t = threadIdx.x;
    float total = 0;
    for (int r = 0; r < rounds; ++r) {
        s[t] = in[(size_t)(blockIdx.x * rounds + r) * 1024 + t];
        __syncthreads();
        for (int step = 512; step; step /= 2) {
            if (t < step) s[t] += s[t + step];
            __syncthreads();
        }
        total += s[0];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = total;
}
__global__ void reduce_warps(const float *in, float *out, int rounds) {
    __shared__ float s[32];
    int t = threadIdx.x;
    float sum = 0;
    for (int r = 0; r < rounds; ++r) sum += in[(size_t)(blockIdx.x * rounds + r) * 1024 + t];
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (t % 32 == 0) s[t / 32] = sum;
    __syncthreads();
    if (t < 32) {
        sum = s[t];
        for (int step = 16; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
        if (t == 0) out[blockIdx.x] = sum;
    }
}
CASE(barriers_ill, "tree-sums") {
    float *in = buffer<float>(32 * MILLION), *out = buffer<float>(2048);
    return [=] { LAUNCH(reduce_tree, 1024, 1024, 0, in, out, 32); };
}
CASE(barriers_cured, "tree-sums.cured") {
    float *in = buffer<float>(32 * MILLION), *out = buffer<float>(2048);
    return [=] { LAUNCH(reduce_warps, 1024, 1024, 0, in, out, 32); };
}

__global__ void relax(const float *in, float *out, int rounds) {  // a block fills a SM
    extern __shared__ float s[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    float x = in[i], y = x + 1, z = x + 2, w = x + 3;
    for (int r = 0; r < rounds; ++r) {
        x = fmaf(x, 0.5f, y), y = fmaf(y, 0.25f, z);
        z = fmaf(z, 0.75f, w), w = fmaf(w, 0.125f, x);
    }
    s[t] = x + y;
    out[i] = s[t] + z + w;
}
static Step relaxed(int blocks, int rounds) {
    float *in = buffer<float>(MILLION), *out = buffer<float>(MILLION);
    CHECK(cudaFuncSetAttribute(relax, cudaFuncAttributeMaxDynamicSharedMemorySize, 160 << 10));
    return [=] { LAUNCH(relax, blocks, 1024, 160 << 10, in, out, rounds); };
}
CASE(tail_ill, "last-wave") { return relaxed(140, 24000); }
CASE(tail_cured, "last-wave.cured") { return relaxed(132, 24000 * 140 / 132); }
CASE(few_ill, "few-blocks") { return relaxed(22, 24000); }
CASE(few_cured, "few-blocks.cured") { return relaxed(132, 4000); }

template <bool PAIRED> __global__ void triangle(const float *in, float *out, int n) {  // row i has i columns
    int block = blockIdx.x;
    float sum = 0;
    for (int side = 0; side < (PAIRED ? 2 : 1); ++side) {
        int row = PAIRED ? (side ? n - 1 - block : block) : block;
        for (int pass = 0; pass < 64; ++pass)
            for (int c = threadIdx.x; c < (row + 1) * 64; c += blockDim.x) sum = fmaf(in[c], 0.5f, sum);
    }
    atomicAdd(&out[block * 32 + threadIdx.x % 32], sum);
}
CASE(unequal_ill, "triangle") {
    float *in = buffer<float>(MILLION), *out = buffer<float>(MILLION);
    return [=] { LAUNCH(triangle<false>, 264, 1024, 0, in, out, 264); };
}
CASE(unequal_cured, "triangle.cured") {
    float *in = buffer<float>(MILLION), *out = buffer<float>(MILLION);
    return [=] { LAUNCH(triangle<true>, 132, 1024, 0, in, out, 264); };
}

// ---- latency and occupancy: chains of loads --------------------------------------------------------------------------

template <int LIVE> __device__ void follow(const int *next, const float *in, float *out, int hops) {
    extern __shared__ float s[];
    int i = blockIdx.x * blockDim.x + threadIdx.x, at = next[i & (MILLION - 1)];
    float v[LIVE];
#pragma unroll
    for (int k = 0; k < LIVE; ++k) v[k] = __ldcg(&in[(i + k * 4099) & (MILLION - 1)]);
    for (int h = 0; h < hops; ++h) {
        at = next[at];
        v[0] += at;
    }
#pragma unroll
    for (int k = 1; k < LIVE; ++k) v[0] = fmaf(v[0], 0.5f, v[k] * at);
    if (at < 0) v[0] += s[threadIdx.x];
    out[i & (MILLION - 1)] = v[0];
}
__global__ void __launch_bounds__(256, 1) walk_wide(const int *next, const float *in, float *out, int hops) {
    follow<180>(next, in, out, hops);
}
__global__ void __launch_bounds__(256, 8) walk(const int *next, const float *in, float *out, int hops) {
    follow<1>(next, in, out, hops);
}
static Step walked(void (*kernel)(const int *, const float *, float *, int), int block, int shared, int size = 16 * MILLION) {
    int *next = buffer<int>(size, 0, size);
    float *in = buffer<float>(MILLION), *out = buffer<float>(MILLION);
    CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
    return [=] {
        kernel<<<MILLION / block, block, shared>>>(next, in, out, 24);
        CHECK(cudaGetLastError());
        ++launches;
    };
}
CASE(registers_ill, "walk-registers") { return walked(walk_wide, 256, 0); }
CASE(registers_cured, "walk-registers.cured") { return walked(walk, 256, 0); }
CASE(occupancy_shared_ill, "walk-shared") { return walked(walk, 256, 100 << 10); }
CASE(occupancy_shared_cured, "walk-shared.cured") { return walked(walk, 256, 0); }
CASE(small_blocks_ill, "walk-blocks") { return walked(walk, 16, 0, 2 * MILLION); }
CASE(small_blocks_cured, "walk-blocks.cured") { return walked(walk, 256, 0, 2 * MILLION); }

int main(int argc, char **argv) { return run_cases(argc, argv); }
