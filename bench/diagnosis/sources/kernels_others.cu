// The causes of kernels.cu in other kernels, of other sizes, and healthy ones. How to run them: harness.h.
#include "harness.h"
#include <cuda_fp16.h>
#include <mma.h>

#define MILLION (1 << 20)
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

// ---- global memory -------------------------------------------------------------------------------------------------

__global__ void thin_out(const float *in, float *out, int n, int every) {
    for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) out[i] = in[(size_t)i * every] * 1.5f;
}
CASE(stride_ill, "every-eighth") {
    float *in = buffer<float>(160 * MILLION), *out = buffer<float>(20 * MILLION);
    return [=] { LAUNCH(thin_out, 2048, 512, 0, in, out, 20 * MILLION, 8); };
}
CASE(stride_cured, "every-eighth.cured") {  // kept beside each other
    float *in = buffer<float>(20 * MILLION), *out = buffer<float>(20 * MILLION);
    return [=] { LAUNCH(thin_out, 2048, 512, 0, in, out, 20 * MILLION, 1); };
}

struct Cell { double pressure, temperature, density, energy, u, v, w, volume; };
__global__ void total(const Cell *cells, double *sum, int n) {
    double own = 0;
    for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) own += cells[i].density * cells[i].volume;
    for (int step = 16; step; step /= 2) own += __shfl_down_sync(~0u, own, step);
    if (threadIdx.x % 32 == 0) sum[INDEX / 32] = own;
}
__global__ void total_arrays(const double *density, const double *volume, double *sum, int n) {
    double own = 0;
    for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) own += density[i] * volume[i];
    for (int step = 16; step; step /= 2) own += __shfl_down_sync(~0u, own, step);
    if (threadIdx.x % 32 == 0) sum[INDEX / 32] = own;
}
CASE(cells_ill, "cells") {
    Cell *cells = (Cell *)buffer<double>(6 * MILLION * 8);
    double *sum = buffer<double>(MILLION);
    return [=] { LAUNCH(total, 132 * 16, 128, 0, cells, sum, 6 * MILLION); };
}
CASE(cells_cured, "cells.cured") {
    double *density = buffer<double>(6 * MILLION), *volume = buffer<double>(6 * MILLION), *sum = buffer<double>(MILLION);
    return [=] { LAUNCH(total_arrays, 132 * 16, 128, 0, density, volume, sum, 6 * MILLION); };
}

__global__ void probe(const unsigned long long *table, const unsigned *keys, unsigned long long *out, int n, unsigned mask) {
    for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) out[i] = table[hashed(keys[i]) & mask] + i;
}
__global__ void probe_sorted(const unsigned long long *table, const unsigned *keys, unsigned long long *out, int n, unsigned mask) {
    for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) out[i] = table[(unsigned)((unsigned long long)i * mask / n)] + keys[i];
}
CASE(probe_ill, "probes") {
    auto *table = buffer<unsigned long long>(64 * MILLION, 0, 1e9);
    auto *keys = buffer<unsigned>(12 * MILLION, 0, 4e9);
    auto *out = buffer<unsigned long long>(12 * MILLION);
    return [=] { LAUNCH(probe, 132 * 8, 256, 0, table, keys, out, 12 * MILLION, 64u * MILLION - 1); };
}
CASE(probe_cured, "probes.cured") {
    auto *table = buffer<unsigned long long>(64 * MILLION, 0, 1e9);
    auto *keys = buffer<unsigned>(12 * MILLION, 0, 4e9);
    auto *out = buffer<unsigned long long>(12 * MILLION);
    return [=] { LAUNCH(probe_sorted, 132 * 8, 256, 0, table, keys, out, 12 * MILLION, 64u * MILLION - 1); };
}

__global__ void scale_shifted(const half *in, half *out, int n, half factor) {  // 2 bytes a thread, off by one element
    for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) out[i] = __hmul(in[i + 1], factor);
}
__global__ void scale_wide(const uint4 *in, uint4 *out, int n, half factor) {
    half2 both = __half2half2(factor);
    for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) {
        uint4 v = in[i];
        half2 *p = (half2 *)&v;
        for (int k = 0; k < 4; ++k) p[k] = __hmul2(p[k], both);
        out[i] = v;
    }
}
CASE(halves_ill, "scale-halves") {
    half *in = (half *)buffer<uint16_t>(128 * MILLION + 8, 0x3000, 0x3c00), *out = (half *)buffer<uint16_t>(128 * MILLION);
    return [=] { LAUNCH(scale_shifted, 132 * 8, 256, 0, in, out, 128 * MILLION, __float2half(0.5f)); };
}
CASE(halves_cured, "scale-halves.cured") {
    half *in = (half *)buffer<uint16_t>(128 * MILLION, 0x3000, 0x3c00), *out = (half *)buffer<uint16_t>(128 * MILLION);
    return [=] { LAUNCH(scale_wide, 132 * 8, 256, 0, (uint4 *)in, (uint4 *)out, 16 * MILLION, __float2half(0.5f)); };
}

__global__ void smooth(const double *in, double *out, int n, int rounds, int chunk) {  // chunk by chunk, each so many rounds
    for (int begin = 0; begin < n; begin += chunk)
        for (int round = 0; round < rounds; ++round)
            for (int i = begin + INDEX; i < min(n, begin + chunk); i += gridDim.x * blockDim.x)
                out[i] = 0.5 * out[i] + 0.25 * in[i];
}
CASE(rounds_ill, "rounds") {
    double *in = buffer<double>(12 * MILLION), *out = buffer<double>(12 * MILLION);
    return [=] { LAUNCH(smooth, 132 * 4, 512, 0, in, out, 12 * MILLION, 5, 12 * MILLION); };
}
CASE(rounds_cured, "rounds.cured") {
    double *in = buffer<double>(12 * MILLION), *out = buffer<double>(12 * MILLION);
    return [=] { LAUNCH(smooth, 132 * 4, 512, 0, in, out, 12 * MILLION, 5, 132 * 4 * 512 * 4); };
}

__global__ void copy_rows(const double2 *in, double2 *out, int n) {
    for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) out[i] = in[i];
}
CASE(copy_healthy, "copy-rows") {
    double *in = buffer<double>(40 * MILLION), *out = buffer<double>(40 * MILLION);
    return [=] { LAUNCH(copy_rows, 132 * 16, 256, 0, (double2 *)in, (double2 *)out, 20 * MILLION); };
}
__global__ void stencil(const float *in, float *out, int width, int height) {
    int x = blockIdx.x * 64 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x == 0 || y == 0 || x >= width - 1 || y >= height - 1) return;
    size_t i = (size_t)y * width + x;
    out[i] = 0.2f * (in[i] + in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
}
CASE(stencil_healthy, "stencil") {
    float *in = buffer<float>(96 * MILLION), *out = buffer<float>(96 * MILLION);
    return [=] { LAUNCH(stencil, dim3(8192 / 64, 12288 / 8), dim3(64, 8), 0, in, out, 8192, 12288); };
}

// ---- shared and local memory ---------------------------------------------------------------------------------------

template <int WIDTH> __global__ void fused_relu(const float *in, float *out, int rounds) {  // sums of rows in shared memory
    extern __shared__ float s[];
    int t = threadIdx.x;
    for (int k = 0; k < 64; ++k) s[k * WIDTH + t] = in[(size_t)blockIdx.x * 4096 + k * 64 + t];
    __syncthreads();
    float sum = 0;
    for (int r = 0; r < rounds; ++r)
        for (int k = 0; k < 64; ++k) sum = fmaf(sum, 0.99f, s[t * WIDTH + ((k + r) & 63)]);
    out[INDEX] = sum;
}
CASE(row_bank_ill, "shared-rows") {
    float *in = buffer<float>(16 * MILLION), *out = buffer<float>(MILLION);
    return [=] { LAUNCH(fused_relu<64>, 4096, 64, 64 * 64 * 4, in, out, 8); };
}
CASE(row_bank_cured, "shared-rows.cured") {
    float *in = buffer<float>(16 * MILLION), *out = buffer<float>(MILLION);
    return [=] { LAUNCH(fused_relu<65>, 4096, 64, 64 * 65 * 4, in, out, 8); };
}

template <int N> __device__ double determinant_like(const double *in, int i, int n) {
    double a[N];
#pragma unroll
    for (int k = 0; k < N; ++k) a[k] = in[(i + k * 1031) & (n - 1)];
    for (int round = 0; round < 6; ++round) {
#pragma unroll
        for (int k = 0; k < N; ++k) a[k] = a[k] * a[(k + 5) % N] + a[(k + 11) % N];
    }
    double sum = 0;
#pragma unroll
    for (int k = 0; k < N; ++k) sum += a[k];
    return sum;
}
__global__ void __launch_bounds__(512, 3) update_cells(const double *in, double *out, int n) {
    out[INDEX] = determinant_like<40>(in, INDEX, n);
}
__global__ void __launch_bounds__(128) update_cells_wide(const double *in, double *out, int n) {
    out[INDEX] = determinant_like<40>(in, INDEX, n);
}
CASE(doubles_spill_ill, "double-values") {
    double *in = buffer<double>(MILLION), *out = buffer<double>(2 * MILLION);
    return [=] { LAUNCH(update_cells, 2 * MILLION / 512, 512, 0, in, out, MILLION); };
}
CASE(doubles_spill_cured, "double-values.cured") {
    double *in = buffer<double>(MILLION), *out = buffer<double>(2 * MILLION);
    return [=] { LAUNCH(update_cells_wide, 2 * MILLION / 128, 128, 0, in, out, MILLION); };
}

__global__ void evaluate(const uint8_t *code, const float *in, float *out, int length, int n) {  // a stack machine
    float stack[24];
    int top = 1, i = INDEX;
    stack[0] = in[i], stack[1] = in[(i + 77) & (n - 1)];
    for (int k = 0; k < length; ++k) {
        int word = code[k];
        if (word & 1 && top < 22) stack[++top] = in[(i + word) & (n - 1)];
        else if (top > 1) --top, stack[top] = stack[top] * 0.5f + stack[top + 1];
        else stack[top] += 1.0f;
    }
    out[i] = stack[top] + stack[0];
}
__global__ void evaluate_shared(const uint8_t *code, const float *in, float *out, int length, int n) {
    __shared__ float stack[24][128];
    int top = 1, i = INDEX, t = threadIdx.x;
    stack[0][t] = in[i], stack[1][t] = in[(i + 77) & (n - 1)];
    for (int k = 0; k < length; ++k) {
        int word = code[k];
        if (word & 1 && top < 22) stack[++top][t] = in[(i + word) & (n - 1)];
        else if (top > 1) --top, stack[top][t] = stack[top][t] * 0.5f + stack[top + 1][t];
        else stack[top][t] += 1.0f;
    }
    out[i] = stack[top][t] + stack[0][t];
}
CASE(stack_ill, "stack-machine") {
    uint8_t *code = buffer<uint8_t>(4096, 0, 255);
    float *in = buffer<float>(MILLION), *out = buffer<float>(MILLION);
    return [=] { LAUNCH(evaluate, MILLION / 128, 128, 0, code, in, out, 400, MILLION); };
}
CASE(stack_cured, "stack-machine.cured") {
    uint8_t *code = buffer<uint8_t>(4096, 0, 255);
    float *in = buffer<float>(MILLION), *out = buffer<float>(MILLION);
    return [=] { LAUNCH(evaluate_shared, MILLION / 128, 128, 0, code, in, out, 400, MILLION); };
}

// ---- instructions --------------------------------------------------------------------------------------------------

__global__ void escape(const float *in, int *out, int most, bool by_warp) {  // threads end after unequal rounds
    int i = INDEX;
    int rounds = hashed(by_warp ? i / 32 : i) % 16 ? most / 16 : most;
    float x = in[i & (MILLION - 1)], y = x;
    for (int r = 0; r < rounds; ++r) {
        float next = fmaf(x, x, -y * y) * 0.3f + 0.1f;
        y = fmaf(x + x, y * 0.3f, 0.2f), x = next;
    }
    out[i] = (int)(1000 * x + y);
}
CASE(escape_ill, "escape-times") {
    float *in = buffer<float>(MILLION);
    int *out = buffer<int>(4 * MILLION);
    return [=] { LAUNCH(escape, 4 * MILLION / 128, 128, 0, in, out, 1024, false); };
}
CASE(escape_cured, "escape-times.cured") {
    float *in = buffer<float>(MILLION);
    int *out = buffer<int>(4 * MILLION);
    return [=] { LAUNCH(escape, 4 * MILLION / 128, 128, 0, in, out, 1024, true); };
}

template <typename T> __global__ void energy(const float *in, float *out, int terms) {  // an accumulator of type T
    int i = INDEX;
    T sum = 0;
    float x = in[i & (MILLION - 1)];
#pragma unroll 8
    for (int k = 0; k < terms; ++k) {
        x = fmaf(x, 0.97f, 0.013f);
        sum += (T)x * x * (T)0.7 + sqrt((T)2.5) * x;
    }
    out[i] = (float)sum;
}
CASE(energy_ill, "energies") {
    float *in = buffer<float>(MILLION), *out = buffer<float>(8 * MILLION);
    return [=] { LAUNCH(energy<double>, 8 * MILLION / 128, 128, 0, in, out, 96); };
}
CASE(energy_cured, "energies.cured") {
    float *in = buffer<float>(MILLION), *out = buffer<float>(8 * MILLION);
    return [=] { LAUNCH(energy<float>, 8 * MILLION / 128, 128, 0, in, out, 96); };
}

__global__ void bodies(const float4 *all, float4 *force, int n) {  // honest: 20 operations a pair
    __shared__ float4 tile[256];
    float4 own = all[INDEX % n];
    float x = 0, y = 0, z = 0;
    for (int begin = 0; begin < n; begin += 256) {
        tile[threadIdx.x] = all[begin + threadIdx.x];
        __syncthreads();
#pragma unroll 16
        for (int k = 0; k < 256; ++k) {
            float4 other = tile[k];
            float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
            float distance = fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, 0.01f)));
            float weight = fmaf(distance, fmaf(distance, fmaf(distance, -0.1f, 0.3f), -0.5f), 1.0f) * other.w;
            weight = fmaf(weight, fmaf(weight, 0.2f, 0.1f), weight);
            x = fmaf(dx, weight, x), y = fmaf(dy, weight, y), z = fmaf(dz, weight, z);
        }
        __syncthreads();
    }
    force[INDEX] = make_float4(x, y, z, 0);
}
CASE(bodies_healthy, "bodies") {
    float4 *all = (float4 *)buffer<float>(16384 * 4), *force = (float4 *)buffer<float>(MILLION * 4);
    return [=] { LAUNCH(bodies, 132 * 8, 256, 0, all, force, 4096); };
}

template <bool FUSED> __global__ void filter(const double *in, double *out, int rounds) {
    int i = INDEX;
    double x = in[i & (MILLION - 1)], a = x, b = x + 1, c = x + 2, d = x + 3;
    for (int r = 0; r < rounds; ++r) {
        a = FUSED ? fma(a, x, 0.5) : __dadd_rn(__dmul_rn(a, x), 0.5);
        b = FUSED ? fma(b, x, 0.5) : __dadd_rn(__dmul_rn(b, x), 0.5);
        c = FUSED ? fma(c, x, 0.5) : __dadd_rn(__dmul_rn(c, x), 0.5);
        d = FUSED ? fma(d, x, 0.5) : __dadd_rn(__dmul_rn(d, x), 0.5);
    }
    out[i] = a + b + c + d;
}
CASE(filter_ill, "double-filter") {
    double *in = buffer<double>(MILLION), *out = buffer<double>(MILLION);
    return [=] { LAUNCH(filter<false>, 132 * 16, 128, 0, in, out, 1500); };
}
CASE(filter_cured, "double-filter.cured") {
    double *in = buffer<double>(MILLION), *out = buffer<double>(MILLION);
    return [=] { LAUNCH(filter<true>, 132 * 16, 128, 0, in, out, 1500); };
}

template <bool CHEAP> __global__ void activations(const float *in, float *out, int n, int layers) {
    for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) {
        float x = in[i];
        for (int k = 0; k < layers; ++k) {  // a sigmoid, or a clipped polynomial in its place
            if (CHEAP) {
                float u = fminf(fmaxf(x * 1.7f, -3.0f), 3.0f);
                x = fmaf(u, fmaf(u * u, -0.0139f, 0.25f), 0.5f);
            } else {
                x = 1.0f / (1.0f + expf(-x * 1.7f));
            }
        }
        out[i] = x;
    }
}
CASE(activations_ill, "sigmoids") {
    float *in = buffer<float>(24 * MILLION), *out = buffer<float>(24 * MILLION);
    return [=] { LAUNCH(activations<false>, 132 * 8, 256, 0, in, out, 24 * MILLION, 12); };
}
CASE(activations_cured, "sigmoids.cured") {
    float *in = buffer<float>(24 * MILLION), *out = buffer<float>(24 * MILLION);
    return [=] { LAUNCH(activations<true>, 132 * 8, 256, 0, in, out, 24 * MILLION, 12); };
}

template <bool MASK> __global__ void bucket(const unsigned long long *keys, int *out, int n, unsigned long long range) {
    for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) {
        unsigned long long key = keys[i];
        int sum = 0;
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            key = key * 6364136223846793005ull + 1442695040888963407ull;
            sum += (int)(MASK ? key & (range - 1) : key % range);
        }
        out[i] = sum;
    }
}
CASE(bucket_ill, "buckets") {
    auto *keys = buffer<unsigned long long>(16 * MILLION, 0, 1e18);
    int *out = buffer<int>(16 * MILLION);
    return [=] { LAUNCH(bucket<false>, 132 * 8, 256, 0, keys, out, 16 * MILLION, 1ull << 40); };
}
CASE(bucket_cured, "buckets.cured") {
    auto *keys = buffer<unsigned long long>(16 * MILLION, 0, 1e18);
    int *out = buffer<int>(16 * MILLION);
    return [=] { LAUNCH(bucket<true>, 132 * 8, 256, 0, keys, out, 16 * MILLION, 1ull << 40); };
}

template <bool DEPENDENT> __global__ void recurrence(const double *in, double *out, int rounds) {
    int i = INDEX;
    double x = in[i], a = x, b = x + 1, c = x + 2, d = x + 3;
    if (DEPENDENT) {
        for (int r = 0; r < rounds; ++r) a = fma(a, x, 0.25);
    } else {
        for (int r = 0; r < rounds / 4; ++r) {
            a = fma(a, x, 0.25), b = fma(b, x, 0.25);
            c = fma(c, x, 0.25), d = fma(d, x, 0.25);
        }
    }
    out[i] = a + b + c + d;
}
CASE(recurrence_ill, "recurrence") {
    double *in = buffer<double>(MILLION), *out = buffer<double>(MILLION);
    return [=] { LAUNCH(recurrence<true>, 264, 64, 0, in, out, 40000); };
}
CASE(recurrence_cured, "recurrence.cured") {
    double *in = buffer<double>(MILLION), *out = buffer<double>(MILLION);
    return [=] { LAUNCH(recurrence<false>, 264, 64, 0, in, out, 40000); };
}

template <int KIND> __device__ __noinline__ float rule(float x, const float *in) {
#pragma unroll
    for (int k = 0; k < 700; ++k) x = fmaf(x, 0.37f + k * (1e-4f + KIND * 1e-6f), 0.11f + KIND * 0.003f) * (k % 5 ? 1.0f : x);
    return x;
}
__global__ void interpret(const float *in, float *out, int rounds) {  // 16 rules of 1,000 instructions
    float x = in[INDEX];
    for (int r = 0; r < rounds; ++r) {
        switch ((threadIdx.x / 32 * 5 + blockIdx.x * 7 + r) & 15) {
        case 0: x = rule<0>(x, in); break;
        case 1: x = rule<1>(x, in); break;
        case 2: x = rule<2>(x, in); break;
        case 3: x = rule<3>(x, in); break;
        case 4: x = rule<4>(x, in); break;
        case 5: x = rule<5>(x, in); break;
        case 6: x = rule<6>(x, in); break;
        case 7: x = rule<7>(x, in); break;
        case 8: x = rule<8>(x, in); break;
        case 9: x = rule<9>(x, in); break;
        case 10: x = rule<10>(x, in); break;
        case 11: x = rule<11>(x, in); break;
        case 12: x = rule<12>(x, in); break;
        case 13: x = rule<13>(x, in); break;
        case 14: x = rule<14>(x, in); break;
        default: x = rule<15>(x, in);
        }
    }
    out[INDEX] = x;
}
__global__ void interpret_rolled(const float *in, float *out, int rounds) {
    float x = in[INDEX];
    for (int r = 0; r < rounds; ++r) {
        int kind = (threadIdx.x / 32 * 5 + blockIdx.x * 7 + r) & 15;
        for (int k = 0; k < 700; k += 5) {
            x = fmaf(x, 0.37f + k * (1e-4f + kind * 1e-6f), 0.11f + kind * 0.003f) * x;
#pragma unroll
            for (int j = 1; j < 5; ++j) x = fmaf(x, 0.37f + (k + j) * (1e-4f + kind * 1e-6f), 0.11f + kind * 0.003f);
        }
    }
    out[INDEX] = x;
}
CASE(interpret_ill, "rules") {
    float *in = buffer<float>(MILLION), *out = buffer<float>(MILLION);
    return [=] { LAUNCH(interpret, 132 * 4, 256, 0, in, out, 24); };
}
CASE(interpret_cured, "rules.cured") {
    float *in = buffer<float>(MILLION), *out = buffer<float>(MILLION);
    return [=] { LAUNCH(interpret_rolled, 132 * 4, 256, 0, in, out, 24); };
}

// ---- matrix products -----------------------------------------------------------------------------------------------

__global__ void small_products(const float *a, const float *b, float *c) {  // one of 64 x 64 x 64 a block
    __shared__ float p[64][65], q[64][64];
    const float *left = a + (size_t)blockIdx.x * 4096, *right = b + (size_t)blockIdx.x * 4096;
    for (int e = threadIdx.x; e < 4096; e += 256) p[e / 64][e % 64] = left[e], q[e / 64][e % 64] = right[e];
    __syncthreads();
    int x = threadIdx.x % 16 * 4, y = threadIdx.x / 16 * 4;
    float sum[4][4] = {};
    for (int again = 0; again < 4; ++again)
        for (int k = 0; k < 64; ++k)
#pragma unroll
            for (int j = 0; j < 4; ++j)
#pragma unroll
                for (int i = 0; i < 4; ++i) sum[j][i] = fmaf(p[y + j][k], q[k][x + i], sum[j][i]);
    for (int j = 0; j < 4; ++j)
        for (int i = 0; i < 4; ++i) c[(size_t)blockIdx.x * 4096 + (y + j) * 64 + x + i] = sum[j][i];
}
__global__ void small_products_tensor(const float *a, const float *b, float *c) {  // the same with TF32
    using namespace nvcuda::wmma;
    __shared__ float p[64][68], q[64][68];
    const float *left = a + (size_t)blockIdx.x * 4096, *right = b + (size_t)blockIdx.x * 4096;
    for (int e = threadIdx.x; e < 4096; e += 256) p[e / 64][e % 64] = left[e], q[e / 64][e % 64] = right[e];
    __syncthreads();
    int warp = threadIdx.x / 32, y = warp / 2 * 16, x = warp % 2 * 32;
    fragment<accumulator, 16, 16, 8, float> sum[2];
    for (auto &part : sum) fill_fragment(part, 0.0f);
    for (int again = 0; again < 4; ++again)
        for (int k = 0; k < 64; k += 8) {
            fragment<matrix_a, 16, 16, 8, precision::tf32, row_major> u;
            load_matrix_sync(u, &p[y][k], 68);
            for (int i = 0; i < 2; ++i) {
                fragment<matrix_b, 16, 16, 8, precision::tf32, row_major> v;
                load_matrix_sync(v, &q[k][x + i * 16], 68);
                mma_sync(sum[i], u, v, sum[i]);
            }
        }
    for (int i = 0; i < 2; ++i)
        store_matrix_sync(&c[(size_t)blockIdx.x * 4096 + y * 64 + x + i * 16], sum[i], 64, mem_row_major);
}
CASE(products_ill, "small-products") {
    float *a = buffer<float>(12 * MILLION), *b = buffer<float>(12 * MILLION), *c = buffer<float>(12 * MILLION);
    return [=] { LAUNCH(small_products, 3072, 256, 0, a, b, c); };
}
CASE(products_cured, "small-products.cured") {
    float *a = buffer<float>(12 * MILLION), *b = buffer<float>(12 * MILLION), *c = buffer<float>(12 * MILLION);
    return [=] { LAUNCH(small_products_tensor, 3072, 256, 0, a, b, c); };
}

// ---- atomics, barriers, the grid -----------------------------------------------------------------------------------

__global__ void add_all(const float *in, float *sums, int n, bool by_warp) {
    for (int i = INDEX; i < n; i += gridDim.x * blockDim.x) {
        float value = in[i];
        if (!by_warp) {
            atomicAdd(&sums[hashed(i) & 3], value);
            continue;
        }
        for (int step = 16; step; step /= 2) value += __shfl_down_sync(~0u, value, step);
        if (threadIdx.x % 32 == 0) sums[32 + (INDEX / 32)] += value;
    }
}
CASE(sums_ill, "four-sums") {
    float *in = buffer<float>(4 * MILLION), *sums = buffer<float>(MILLION);
    return [=] { LAUNCH(add_all, 132 * 8, 256, 0, in, sums, 4 * MILLION, false); };
}
CASE(sums_cured, "four-sums.cured") {
    float *in = buffer<float>(4 * MILLION), *sums = buffer<float>(MILLION);
    return [=] { LAUNCH(add_all, 132 * 8, 256, 0, in, sums, 4 * MILLION, true); };
}

__global__ void time_steps(const float *in, float *out, int steps) {  // in each step one warp works, the others wait
    __shared__ float s[512];
    int t = threadIdx.x;
    s[t] = in[INDEX];
    __syncthreads();
    for (int r = 0; r < steps; ++r) {
        if (t < 32) {
            float x = s[t];
            for (int k = 0; k < 16; ++k) x = fmaf(x, 0.75f, s[(t + 32 * k) & 511]);
            s[t] = x * 0.1f;
        }
        __syncthreads();
        s[t] = fmaf(s[t], 0.9f, s[t & 31] * 0.01f);
        __syncthreads();
    }
    out[INDEX] = s[t];
}
__global__ void time_steps_spread(const float *in, float *out, int steps) {  // each warp does its part of the serial work
    __shared__ float s[16][32];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    s[warp][lane] = in[INDEX];
    __syncwarp();
    for (int r = 0; r < steps; ++r) {
        float x = s[warp][lane];
        x = fmaf(x, 0.75f, s[warp][(lane + r) & 31]);
        s[warp][lane] = fmaf(x, 0.09f, s[warp][lane & 7] * 0.01f);
        __syncwarp();
    }
    out[INDEX] = s[warp][lane];
}
CASE(steps_ill, "time-steps") {
    float *in = buffer<float>(MILLION), *out = buffer<float>(MILLION);
    return [=] { LAUNCH(time_steps, 132 * 4, 512, 0, in, out, 1000); };
}
CASE(steps_cured, "time-steps.cured") {
    float *in = buffer<float>(MILLION), *out = buffer<float>(MILLION);
    return [=] { LAUNCH(time_steps_spread, 132 * 4, 512, 0, in, out, 1000); };
}

__global__ void __launch_bounds__(512) evolve(const double *in, double *out, int rounds) {
    extern __shared__ double last[];
    int i = INDEX;
    double x = in[i], y = x + 1, z = x - 1;
    for (int r = 0; r < rounds; ++r) x = fma(x, 0.5, y), y = fma(y, 0.25, z), z = fma(z, 0.125, x);
    last[threadIdx.x] = x;
    out[i] = last[threadIdx.x] + y + z;
}
static Step evolved(int blocks, int rounds) {  // two blocks fit in a SM
    double *in = buffer<double>(MILLION), *out = buffer<double>(MILLION);
    CHECK(cudaFuncSetAttribute(evolve, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10));
    return [=] { LAUNCH(evolve, blocks, 512, 100 << 10, in, out, rounds); };
}
CASE(second_tail_ill, "second-wave") { return evolved(280, 16000); }
CASE(second_tail_cured, "second-wave.cured") { return evolved(264, 16000 * 280 / 264); }
CASE(forty_ill, "forty-blocks") { return evolved(40, 16000); }
CASE(forty_cured, "forty-blocks.cured") { return evolved(264, 16000 * 40 / 264); }

__global__ void sparse_rows(const int *begin, const float *values, const float *x, float *y, int rows) {  // a block a row
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        float sum = 0;
        for (int k = begin[row] + threadIdx.x; k < begin[row + 1]; k += blockDim.x) sum = fmaf(values[k], x[k & 4095], sum);
        for (int step = 16; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
        if (threadIdx.x % 32 == 0) atomicAdd(&y[row], sum);
    }
}
static Step sparse(bool equal) {  // 4,096 rows, of which each 512th has as many entries as 400 others
    std::vector<int> begin(4097, 0);
    int total = 0, rows = 4096, mean = 0;
    for (int r = 0; r < rows; ++r) total += r % 512 == 5 ? 1600000 : 4000;
    mean = total / rows;
    for (int r = 0; r < rows; ++r) begin[r + 1] = begin[r] + (equal ? mean : r % 512 == 5 ? 1600000 : 4000);
    int *offsets = copied(begin);
    float *values = buffer<float>(total), *x = buffer<float>(4096), *y = buffer<float>(4096);
    return [=] { LAUNCH(sparse_rows, 4096, 256, 0, offsets, values, x, y, rows); };
}
CASE(sparse_ill, "sparse-rows") { return sparse(false); }
CASE(sparse_cured, "sparse-rows.cured") { return sparse(true); }

// ---- latency and occupancy: a search in a tree ----------------------------------------------------------------------

template <int LIVE> __device__ void searched(const float *keys, const float *in, float *out, int levels) {
    extern __shared__ float s[];
    int i = INDEX;
    float wanted = in[i & (MILLION - 1)], v[LIVE];
#pragma unroll
    for (int k = 0; k < LIVE; ++k) v[k] = __ldcg(&in[(i * 3 + k * 2053) & (MILLION - 1)]);
    unsigned node = 1;
    for (int l = 0; l < levels; ++l) node = 2 * node + (keys[node] + (hashed(node + i) & 1) * 0.5f < wanted);
#pragma unroll
    for (int k = 1; k < LIVE; ++k) v[0] = fmaf(v[0], 0.5f, v[k] * node);
    if (node == 0) v[0] += s[threadIdx.x];
    out[i & (MILLION - 1)] = v[0] + node;
}
__global__ void __launch_bounds__(128, 2) find_many(const float *keys, const float *in, float *out, int levels) {
    searched<200>(keys, in, out, levels);
}
__global__ void __launch_bounds__(1024) find(const float *keys, const float *in, float *out, int levels) {
    searched<1>(keys, in, out, levels);
}
static Step found_in(void (*kernel)(const float *, const float *, float *, int), int block, int shared, int levels = 25) {
    float *keys = buffer<float>(64 * MILLION), *in = buffer<float>(MILLION), *out = buffer<float>(MILLION);
    CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
    return [=] {
        kernel<<<(2 * MILLION + block - 1) / block, block, shared>>>(keys, in, out, levels);
        CHECK(cudaGetLastError());
        ++launches;
    };
}
CASE(find_registers_ill, "search-registers") { return found_in(find_many, 128, 0); }
CASE(find_registers_cured, "search-registers.cured") { return found_in(find, 128, 0); }
CASE(find_shared_ill, "search-shared") { return found_in(find, 192, 70 << 10); }
CASE(find_shared_cured, "search-shared.cured") { return found_in(find, 192, 0); }
CASE(find_blocks_ill, "search-blocks") { return found_in(find, 32, 0, 19); }
CASE(find_blocks_cured, "search-blocks.cured") { return found_in(find, 512, 0, 19); }

int main(int argc, char **argv) { return run_cases(argc, argv); }
