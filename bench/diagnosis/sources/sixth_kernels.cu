// Kernels of many fields, each with one illness (or none); NAME.cured is its twin.
#include "harness.h"
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
namespace cg = cooperative_groups;

// Helpers, used by the steps of several cases.
template <typename T, typename F> __global__ void transform(const T *in, T *out, size_t n, F f) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) out[i] = f(in[i]);
}
struct Scaled {
    float a, b;
    __device__ float operator()(float x) const { return fmaf(a, x, b); }
};

// ---- uncoalesced-access: a warp runs along y (rows 4 KB apart) in [z][y][x]; the twin's warps run along x.
template <bool along_x> __global__ void curl(const float *__restrict__ u, const float *__restrict__ v, float *out, int nx, int ny) {
    int x, y;
    if (along_x) {
        x = blockIdx.x * 32 + threadIdx.x;
        y = blockIdx.y * 8 + threadIdx.y;
    } else {
        y = blockIdx.x * 32 + threadIdx.x;
        x = blockIdx.y * 8 + threadIdx.y;
    }
    size_t at = ((size_t)blockIdx.z * ny + y) * nx + x;
    int right = x + 1 < nx ? 1 : 0, below = y + 1 < ny ? nx : 0;
    out[at] = (v[at + right] - v[at]) * 0.25f - (u[at + below] - u[at]) * 0.3f;
}
template <bool along_x> static Step vorticity() {
    const int nx = 1024, ny = 512, nz = 96;
    size_t n = (size_t)nx * ny * nz;
    float *u = buffer<float>(n, -9, 9), *v = buffer<float>(n, -9, 9), *w = buffer<float>(n), *mean = buffer<float>(nx * ny);
    return [=] {
        LAUNCH(transform, nx * ny / 256, 256, 0, w, mean, (size_t)nx * ny, Scaled{0.5f, 0.1f});
        dim3 grid = along_x ? dim3(nx / 32, ny / 8, nz) : dim3(ny / 32, nx / 8, nz);
        LAUNCH(curl<along_x>, grid, dim3(32, 8), 0, u, v, w, nx, ny);
    };
}
CASE(vorticity_ill, "vorticity") { return vorticity<false>(); }
CASE(vorticity_cured, "vorticity.cured") { return vorticity<true>(); }

// ---- array-of-structures: 8 of the 64 bytes of a plot are used; the twin has an array for each of the two fields.
struct Plot {
    float latitude, longitude, height, slope, aspect, moisture, demand, age;
    float nutrients[8];
};
__global__ void irrigate(Plot *plots, const float *__restrict__ rain, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float level = fmaf(0.8f, plots[i].moisture, rain[i]);
    plots[i].moisture = fmaxf(level - 0.02f * plots[i].demand, 0.f);
}
__global__ void irrigate(float *moisture, const float *__restrict__ demand, const float *__restrict__ rain, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float level = fmaf(0.8f, moisture[i], rain[i]);
    moisture[i] = fmaxf(level - 0.02f * demand[i], 0.f);
}
CASE(vineyard_ill, "vineyard-plots") {
    const int n = 12 << 20;
    Plot *plots = (Plot *)buffer<float>((size_t)n * 16);
    float *rain = buffer<float>(n);
    return [=] {
        for (int day = 0; day < 2; ++day) {
            void (*kernel)(Plot *, const float *, int) = irrigate;
            LAUNCH(kernel, n / 256, 256, 0, plots, rain, n);
        }
    };
}
CASE(vineyard_cured, "vineyard-plots.cured") {
    const int n = 12 << 20;
    float *moisture = buffer<float>(n), *demand = buffer<float>(n), *rain = buffer<float>(n);
    return [=] {
        for (int day = 0; day < 2; ++day) {
            void (*kernel)(float *, const float *, const float *, int) = irrigate;
            LAUNCH(kernel, n / 256, 256, 0, moisture, demand, rain, n);
        }
    };
}

// ---- random-gather: policies in the order of their sale look up the hazard of their site; the twin's are sorted by site.
__global__ void site_of_policy(uint32_t *site, uint32_t n, uint32_t times) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t j = (i * times) & (n - 1);  // n is a power of two, times odd: a permutation
    site[i] = (j & ~7u) + (hashed(j) & 7);
}
__global__ void premiums(const uint4 *__restrict__ site, const float *__restrict__ hazard, float4 *__restrict__ premium, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint4 s = site[i];
    float4 h = make_float4(hazard[s.x], hazard[s.y], hazard[s.z], hazard[s.w]);
    premium[i] = make_float4(120.f + 40.f * h.x, 120.f + 40.f * h.y, 120.f + 40.f * h.z, 120.f + 40.f * h.w);
}
static Step policies(uint32_t times) {
    const uint32_t n = 1 << 26;
    float *hazard = buffer<float>(n), *premium = buffer<float>(n);
    uint32_t *site = buffer<uint32_t>(n, 0, 1);
    site_of_policy<<<n / 256, 256>>>(site, n, times);
    CHECK(cudaGetLastError());
    return [=] { LAUNCH(premiums, n / 4 / 256, 256, 0, (uint4 *)site, hazard, (float4 *)premium, (int)n / 4); };
}
CASE(policies_ill, "policies-by-site") { return policies(2654435761u); }
CASE(policies_cured, "policies-by-site.cured") { return policies(1); }

// ---- narrow-access: a dilation loads 25 single bytes a pixel; the twin loads words and joins the flags of four pixels at once.
__global__ void dilate_bytes(const uint8_t *__restrict__ in, uint8_t *__restrict__ out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 4 || x >= w - 4 || y < 2 || y >= h - 2) return;
    int flags = 0;
#pragma unroll
    for (int dy = -2; dy <= 2; ++dy)
#pragma unroll
        for (int dx = -2; dx <= 2; ++dx) flags |= in[(size_t)(y + dy) * w + x + dx];
    out[(size_t)y * w + x] = flags;
}
__global__ void dilate_words(const uint32_t *__restrict__ in, uint32_t *__restrict__ out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || x >= w - 1 || y < 2 || y >= h - 2) return;
    uint32_t flags = 0;
#pragma unroll
    for (int dy = -2; dy <= 2; ++dy) {
        const uint32_t *row = in + (size_t)(y + dy) * w + x;
        uint32_t left = row[-1], here = row[0], right = row[1];
        flags |= __funnelshift_r(left, here, 16) | __funnelshift_r(left, here, 24) | here;
        flags |= __funnelshift_r(here, right, 8) | __funnelshift_r(here, right, 16);
    }
    out[(size_t)y * w + x] = flags;
}
CASE(coral_ill, "coral-masks") {
    const int w = 8192, h = 8192;
    uint8_t *in = buffer<uint8_t>((size_t)w * h, 0, 256), *out = buffer<uint8_t>((size_t)w * h, 0, 1);
    return [=] { LAUNCH(dilate_bytes, dim3(w / 64, h / 4), dim3(64, 4), 0, in, out, w, h); };
}
CASE(coral_cured, "coral-masks.cured") {
    const int w = 8192, h = 8192;
    uint8_t *in = buffer<uint8_t>((size_t)w * h, 0, 256), *out = buffer<uint8_t>((size_t)w * h, 0, 1);
    return [=] { LAUNCH(dilate_words, dim3(w / 4 / 64, h / 4), dim3(64, 4), 0, (uint32_t *)in, (uint32_t *)out, w / 4, h); };
}

// ---- bank-conflicts: each thread's 32 states lie 32 words apart in shared memory; the twin's lie 33 apart.
template <int pitch> __global__ void viterbi(const float *__restrict__ emission, float *__restrict__ best, int steps, int sequences) {
    __shared__ float states[128 * pitch];
    float *mine = states + threadIdx.x * pitch;
    int sequence = blockIdx.x * 128 + threadIdx.x;
#pragma unroll 4
    for (int k = 0; k < 32; ++k) mine[k] = -0.1f * k;
    for (int t = 0; t < steps; ++t) {
        float e = emission[(size_t)t * sequences + sequence], before = mine[31];
#pragma unroll 4
        for (int k = 0; k < 32; ++k) {
            float now = mine[k];
            mine[k] = fmaxf(before - 0.7f, now - 0.2f) + e;
            before = now;
        }
    }
    float most = mine[0];
#pragma unroll 4
    for (int k = 1; k < 32; ++k) most = fmaxf(most, mine[k]);
    best[sequence] = most;
}
template <int pitch> static Step splice_sites() {
    const int sequences = 132 * 12 * 4 * 128, steps = 8;
    float *emission = buffer<float>((size_t)sequences * steps, -1, 1), *best = buffer<float>(sequences);
    return [=] { LAUNCH(viterbi<pitch>, sequences / 128, 128, 0, emission, best, steps, sequences); };
}
CASE(splice_ill, "splice-sites") { return splice_sites<32>(); }
CASE(splice_cured, "splice-sites.cured") { return splice_sites<33>(); }

// ---- register-spills: 36 moments a thread under 32 registers (launch bounds); the twin may have the registers it needs.
__device__ __forceinline__ void moments_of(const float *__restrict__ pixel, float *out, int pixels) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    float m[36];
#pragma unroll
    for (int k = 0; k < 36; ++k) m[k] = 0;
#pragma unroll 1
    for (int i = 0; i < pixels; ++i) {
        float v = pixel[(size_t)i * threads + thread];
        float x = (i & 15) * 0.125f - 0.9f + 0.01f * v, y = (i >> 4) * 0.125f - 0.4f - 0.01f * v;
        float xp = v;
#pragma unroll
        for (int p = 0; p < 6; ++p) {
            float both = xp;
#pragma unroll
            for (int q = 0; q < 6; ++q) {
                m[p * 6 + q] += both;
                both *= y;
            }
            xp *= x;
        }
    }
#pragma unroll
    for (int k = 0; k < 36; ++k) out[(size_t)k * threads + thread] = m[k];
}
__global__ void __launch_bounds__(256, 8) moments_bounded(const float *__restrict__ pixel, float *out, int pixels) { moments_of(pixel, out, pixels); }
__global__ void __launch_bounds__(256) moments_free(const float *__restrict__ pixel, float *out, int pixels) { moments_of(pixel, out, pixels); }
CASE(moments_ill, "shape-moments") {
    const int threads = 1056 * 256, pixels = 128;
    float *pixel = buffer<float>((size_t)threads * pixels), *out = buffer<float>((size_t)threads * 36);
    return [=] { LAUNCH(moments_bounded, threads / 256, 256, 0, pixel, out, pixels); };
}
CASE(moments_cured, "shape-moments.cured") {
    const int threads = 1056 * 256, pixels = 128;
    float *pixel = buffer<float>((size_t)threads * pixels), *out = buffer<float>((size_t)threads * 36);
    return [=] { LAUNCH(moments_free, threads / 256, 256, 0, pixel, out, pixels); };
}

// ---- local-array-indexing: the ranks of a hand are counted in an array of the thread; the twin counts in 4 bits of a word each.
struct CountsInArray {
    int count[13];
    __device__ void clear() {
#pragma unroll
        for (int r = 0; r < 13; ++r) count[r] = 0;
    }
    __device__ void add(int rank) { ++count[rank]; }
    __device__ int get(int rank) const { return count[rank]; }
};
struct CountsInBits {
    unsigned long long count;
    __device__ void clear() { count = 0; }
    __device__ void add(int rank) { count += 1ull << (4 * rank); }
    __device__ int get(int rank) const { return (int)(count >> (4 * rank)) & 15; }
};
template <typename Counts> __global__ void deal(uint32_t seed, int hands, int *scores) {
    uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x, state = hashed(thread ^ seed);
    int total = 0;
#pragma unroll 1
    for (int hand = 0; hand < hands; ++hand) {
        Counts counts;
        counts.clear();
#pragma unroll
        for (int card = 0; card < 7; ++card) {
            state = state * 1664525u + 1013904223u;
            counts.add((int)(((state >> 16) * 13u) >> 16));
        }
        int pairs = 0, run = 0, longest = 0;
#pragma unroll
        for (int rank = 0; rank < 13; ++rank) {
            int c = counts.get(rank);
            pairs += c * c;
            run = c ? run + 1 : 0;
            longest = max(longest, run);
        }
        total += pairs + (longest >= 5 ? 100 : 0);
    }
    scores[thread] = total;
}
template <typename Counts> static Step poker() {
    int *scores = buffer<int>(2112 * 256);
    return [=] { LAUNCH(deal<Counts>, 2112, 256, 0, 77u, 64, scores); };
}
CASE(poker_ill, "poker-hands") { return poker<CountsInArray>(); }
CASE(poker_cured, "poker-hands.cured") { return poker<CountsInBits>(); }

// ---- divergence: the bees of eight species are mixed within a warp; the twin's are sorted by species.
template <int K> __device__ float forage(float energy, float nectar) {
#pragma unroll 1
    for (int flower = 0; flower < 96; ++flower) {
        if (K & 1) energy = fmaf(energy, 0.99f - 0.001f * K, nectar);
        else energy = fmaf(nectar, 0.5f + 0.01f * K, energy * 0.98f);
        if (K & 2) nectar = fminf(nectar * 1.01f, 3.f + K);
        else nectar = fmaf(nectar, -0.97f, 0.1f * K);
        if (K & 4) energy = fmaxf(energy, -nectar);
        else energy = energy - 0.003f * K * nectar;
    }
    return energy;
}
__global__ void bees(const int *__restrict__ species, const float *__restrict__ nectar, float *energy, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float e = energy[i], s = nectar[i];
    switch (species[i]) {
    case 0: e = forage<0>(e, s); break;
    case 1: e = forage<1>(e, s); break;
    case 2: e = forage<2>(e, s); break;
    case 3: e = forage<3>(e, s); break;
    case 4: e = forage<4>(e, s); break;
    case 5: e = forage<5>(e, s); break;
    case 6: e = forage<6>(e, s); break;
    default: e = forage<7>(e, s); break;
    }
    energy[i] = e;
}
static Step pollinators(bool sorted) {
    const int n = 6 << 20;
    std::vector<int> kinds(n);
    for (int i = 0; i < n; ++i) kinds[i] = sorted ? (int)((long long)i * 8 / n) : (int)((uint32_t)i * 2654435761u >> 29);
    int *species = copied(kinds);
    float *nectar = buffer<float>(n), *energy = buffer<float>(n), *shown = buffer<float>(n);
    return [=] {
        LAUNCH(bees, n / 256, 256, 0, species, nectar, energy, n);
        LAUNCH(transform, n / 256, 256, 0, energy, shown, (size_t)n, Scaled{0.1f, 0.f});
    };
}
CASE(pollinators_ill, "pollinators") { return pollinators(false); }
CASE(pollinators_cured, "pollinators.cured") { return pollinators(true); }

// ---- fp64-by-accident: constants without f and exp and log in double on floats; the twin has them in float.
template <typename Real> __global__ void dew_points(const float2 *__restrict__ weather, float *__restrict__ dew, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float2 w = weather[i];
    Real t = w.x * Real(40.0), pressure = Real(6.112) * exp(Real(17.67) * t / (t + Real(243.5)));
    Real ratio = log(Real(0.05 + 0.9) * (w.y + Real(0.01)) * pressure / Real(6.112));
    dew[i] = Real(243.5) * ratio / (Real(17.67) - ratio);
}
template <typename Real> static Step dew() {
    const int n = 32 << 20;
    float2 *weather = (float2 *)buffer<float>((size_t)n * 2);
    float *out = buffer<float>(n);
    return [=] { LAUNCH(dew_points<Real>, n / 256, 256, 0, weather, out, n); };
}
CASE(dew_ill, "dew-points") { return dew<double>(); }
CASE(dew_cured, "dew-points.cured") { return dew<float>(); }

// ---- special-functions: sixteen orders of a fringe by a cosine each; the twin has one cosine and a recurrence.
template <bool recurrence> __global__ void fringes(const float *__restrict__ phases, float *__restrict__ orders, int points) {
    __shared__ float phase[512];
    for (int k = threadIdx.x; k < points; k += blockDim.x) phase[k] = phases[k];
    __syncthreads();
    int pixel = blockIdx.x * blockDim.x + threadIdx.x, pixels = gridDim.x * blockDim.x;
    float place = 1e-5f * pixel, sum[16];
#pragma unroll
    for (int h = 0; h < 16; ++h) sum[h] = 0;
#pragma unroll 1
    for (int k = 0; k < points; ++k) {
        float angle = phase[k] + place;
        if (recurrence) {
            float c = __cosf(angle), before = 1, now = c, twice = 2 * c;
#pragma unroll
            for (int h = 0; h < 16; ++h) {
                sum[h] += now;
                float next = fmaf(twice, now, -before);
                before = now;
                now = next;
            }
        } else {
#pragma unroll
            for (int h = 0; h < 16; ++h) sum[h] += __cosf((h + 1) * angle);
        }
    }
#pragma unroll
    for (int h = 0; h < 16; ++h) orders[(size_t)h * pixels + pixel] = sum[h];
}
template <bool recurrence> static Step holograms() {
    const int pixels = 1056 * 256, points = 512;
    float *phases = buffer<float>(points, -3, 3), *orders = buffer<float>((size_t)pixels * 16);
    return [=] { LAUNCH(fringes<recurrence>, pixels / 256, 256, 0, phases, orders, points); };
}
CASE(fringes_ill, "fringe-orders") { return holograms<false>(); }
CASE(fringes_cured, "fringe-orders.cured") { return holograms<true>(); }

// ---- integer-division: products of residues modulo 16 primes by %; the twin reduces with a reciprocal computed once (Barrett).
struct Primes {
    unsigned long long prime[16], reciprocal[16];
};
template <bool barrett> __global__ void limbs(const uint32_t *__restrict__ a, const uint32_t *__restrict__ b, uint32_t *__restrict__ out, int n, const Primes primes) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long x = a[i], y = b[i];
#pragma unroll 1
    for (int k = 0; k < 16; ++k) {
        unsigned long long p = primes.prime[k], m = primes.reciprocal[k], r = x;
#pragma unroll
        for (int power = 0; power < 3; ++power) {
            unsigned long long product = r * y;
            if (barrett) {
                r = product - __umul64hi(product, m) * p;
                if (r >= p) r -= p;
            } else
                r = product % p;
        }
        out[(size_t)k * n + i] = (uint32_t)r;
    }
}
template <bool barrett> static Step cipher() {
    const int n = 2 << 20;
    uint32_t *a = buffer<uint32_t>(n, 1, 1 << 29), *b = buffer<uint32_t>(n, 1, 1 << 29), *out = buffer<uint32_t>((size_t)n * 16, 0, 1);
    Primes primes;
    for (int k = 0; k < 16; ++k) {
        primes.prime[k] = 998244353ull - 2ull * 119 * (k * 1024 + k);
        primes.reciprocal[k] = ~0ull / primes.prime[k];
    }
    return [=] { LAUNCH(limbs<barrett>, n / 256, 256, 0, a, b, out, n, primes); };
}
CASE(cipher_ill, "cipher-limbs") { return cipher<false>(); }
CASE(cipher_cured, "cipher-limbs.cured") { return cipher<true>(); }

// ---- contended-atomics: each ballot adds to one of six totals by an atomic; the twin adds in registers, then six atomics a block.
__device__ __forceinline__ float weight_of(float age) {
    float w = age;
#pragma unroll
    for (int k = 0; k < 16; ++k) w = fmaf(w, 0.93f, 0.02f * k);
    return w;
}
__global__ void count_directly(const int *__restrict__ choice, const float *__restrict__ age, float *totals, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&totals[choice[i]], weight_of(age[i]));
}
__global__ void count_in_registers(const int *__restrict__ choice, const float *__restrict__ age, float *totals, int n) {
    __shared__ float part[8][6];
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    float sum[6] = {};
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int c = choice[i];
        float w = weight_of(age[i]);
#pragma unroll
        for (int k = 0; k < 6; ++k) sum[k] += c == k ? w : 0.f;
    }
#pragma unroll
    for (int k = 0; k < 6; ++k) {
        for (int lane = 16; lane; lane /= 2) sum[k] += warp.shfl_down(sum[k], lane);
        if (warp.thread_rank() == 0) part[threadIdx.x / 32][k] = sum[k];
    }
    __syncthreads();
    if (threadIdx.x < 6) {
        float all = 0;
        for (int k = 0; k < 8; ++k) all += part[k][threadIdx.x];
        atomicAdd(&totals[threadIdx.x], all);
    }
}
template <bool directly> static Step ballots() {
    const int n = 4 << 20;
    int *choice = buffer<int>(n, 0, 6);
    float *age = buffer<float>(n), *totals = buffer<float>(6), *scaled = buffer<float>(n);
    return [=] {
        LAUNCH(transform, n / 256, 256, 0, age, scaled, (size_t)n, Scaled{1.1f, 0.2f});
        if (directly) LAUNCH(count_directly, 1056, 256, 0, choice, scaled, totals, n);
        else LAUNCH(count_in_registers, 1056, 256, 0, choice, scaled, totals, n);
    };
}
CASE(ballots_ill, "ballots") { return ballots<true>(); }
CASE(ballots_cured, "ballots.cured") { return ballots<false>(); }

// ---- barriers: mean and deviation of a row by trees of a block of 1024 with barriers; the twin's rows belong to warps, which shuffle.
__global__ void __launch_bounds__(1024) zscores_by_block(const float *__restrict__ genes, float *__restrict__ z) {
    __shared__ float tree[1024];
    int t = threadIdx.x;
    size_t at = (size_t)blockIdx.x * 1024 + t;
    float x = genes[at];
    tree[t] = x;
    __syncthreads();
    for (int half = 512; half; half /= 2) {
        if (t < half) tree[t] += tree[t + half];
        __syncthreads();
    }
    float mean = tree[0] / 1024;
    __syncthreads();
    float d = x - mean;
    tree[t] = d * d;
    __syncthreads();
    for (int half = 512; half; half /= 2) {
        if (t < half) tree[t] += tree[t + half];
        __syncthreads();
    }
    z[at] = d * rsqrtf(tree[0] / 1024 + 1e-6f);
}
__global__ void zscores_by_warp(const float4 *__restrict__ genes, float4 *__restrict__ z) {
    int lane = threadIdx.x % 32;
    size_t row = (size_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    float4 x[8];
    float sum = 0, squares = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        x[k] = genes[row * 256 + k * 32 + lane];
        sum += x[k].x + x[k].y + x[k].z + x[k].w;
    }
    for (int lanes = 16; lanes; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
    float mean = sum / 1024;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        x[k].x -= mean, x[k].y -= mean, x[k].z -= mean, x[k].w -= mean;
        squares += x[k].x * x[k].x + x[k].y * x[k].y + x[k].z * x[k].z + x[k].w * x[k].w;
    }
    for (int lanes = 16; lanes; lanes /= 2) squares += __shfl_xor_sync(~0u, squares, lanes);
    float scale = rsqrtf(squares / 1024 + 1e-6f);
#pragma unroll
    for (int k = 0; k < 8; ++k) z[row * 256 + k * 32 + lane] = make_float4(x[k].x * scale, x[k].y * scale, x[k].z * scale, x[k].w * scale);
}
CASE(zscores_ill, "gene-zscores") {
    const int rows = 65536;
    float *genes = buffer<float>((size_t)rows * 1024), *z = buffer<float>((size_t)rows * 1024);
    return [=] { LAUNCH(zscores_by_block, rows, 1024, 0, genes, z); };
}
CASE(zscores_cured, "gene-zscores.cured") {
    const int rows = 65536;
    float *genes = buffer<float>((size_t)rows * 1024), *z = buffer<float>((size_t)rows * 1024);
    return [=] { LAUNCH(zscores_by_warp, rows / 8, 256, 0, (float4 *)genes, (float4 *)z); };
}

// ---- tail-wave: 140 equal blocks, one an SM (a table of 128 KB): eight run alone at the end; the twin has 132 blocks with 140/132 of the draws.
__global__ void __launch_bounds__(1024) resample(const float *__restrict__ cohort, float *means, int draws) {
    extern __shared__ float table[];
    for (int k = threadIdx.x; k < 32768; k += 1024) table[k] = cohort[k];
    __syncthreads();
    uint32_t lane = threadIdx.x % 32, state = hashed(blockIdx.x * 1024 + threadIdx.x);
    float a = 0, b = 0;
#pragma unroll 4
    for (int k = 0; k < draws; ++k) {
        state = hashed(state + k);
        float x = table[(state >> 22) * 32 + lane];
        a += x;
        b = fmaf(x, x, b);
    }
    means[blockIdx.x * 1024 + threadIdx.x] = a + b;
}
static Step bootstrap(int blocks, int draws) {
    float *cohort = buffer<float>(32768), *means = buffer<float>(140 * 1024), *shown = buffer<float>(140 * 1024);
    CHECK(cudaFuncSetAttribute(resample, cudaFuncAttributeMaxDynamicSharedMemorySize, 131072));
    return [=] {
        LAUNCH(resample, blocks, 1024, 131072, cohort, means, draws);
        LAUNCH(transform, 140 * 4, 256, 0, means, shown, (size_t)140 * 1024, Scaled{1.f / 3000, 0.f});
    };
}
CASE(bootstrap_ill, "bootstrap-trials") { return bootstrap(140, 5280); }
CASE(bootstrap_cured, "bootstrap-trials.cured") { return bootstrap(132, 5600); }

// ---- occupancy-block-size: a warp a block, hence 32 warps an SM, walks a tree in memory; the twin has blocks of 8 warps, 64 an SM.
__global__ void ledger(const uint16_t *__restrict__ keys, uint32_t *__restrict__ found, int lookups) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    uint32_t account = (blockIdx.x * blockDim.x + threadIdx.x) / 32, result = 0;
#pragma unroll 1
    for (int k = 0; k < lookups; ++k) {
        uint32_t node = 0, key = hashed(account * 64 + k);
#pragma unroll 1
        for (int level = 0; level < 5; ++level) {  // 1 + 32 + 1024 + 32768 + 1048576 nodes of 32 keys
            bool less = keys[(size_t)node * 32 + warp.thread_rank()] < (key & 0xffff);
            uint32_t child = __popc(warp.ballot(less)) & 31;
            result += child;
            node = node * 32 + 1 + ((child + key) & 31);
            key = key * 747796405u + 2891336453u + child;
        }
    }
    if (warp.thread_rank() == 0) found[account] = result;
}
static Step ledgers(int block) {
    const int warps = 132 * 64 * 8;
    uint16_t *keys = buffer<uint16_t>((size_t)(1 + 32 + 1024 + 32768 + 1048576) * 32, 0, 65536);
    uint32_t *found = buffer<uint32_t>(warps, 0, 1);
    return [=] { LAUNCH(ledger, warps * 32 / block, block, 0, keys, found, 24); };
}
CASE(ledger_ill, "ledger-lookups") { return ledgers(32); }
CASE(ledger_cured, "ledger-lookups.cured") { return ledgers(256); }

// ---- tensor-cores-unused: a product of bfloat16 matrices on the FP32 units; the twin uses wmma.
typedef __nv_bfloat16 bf16;
__global__ void __launch_bounds__(256) scores_by_fma(const bf16 *__restrict__ a, const bf16 *__restrict__ b, float *__restrict__ c, int n, int k) {
    __shared__ float as[16][64 + 4], bs[16][64];
    int t = threadIdx.x, row = t / 16, column = t % 16;
    float sum[4][4] = {};
    const bf16 *arow = a + (size_t)blockIdx.y * 64 * k, *bcolumn = b + blockIdx.x * 64;
    for (int at = 0; at < k; at += 16) {
#pragma unroll
        for (int part = 0; part < 4; ++part) {
            int e = part * 256 + t;
            as[e % 16][e / 16] = __bfloat162float(arow[(size_t)(e / 16) * k + at + e % 16]);
            bs[e / 64][e % 64] = __bfloat162float(bcolumn[(size_t)(at + e / 64) * n + e % 64]);
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < 16; ++j) {
            float4 x = *(float4 *)&as[j][row * 4], y = *(float4 *)&bs[j][column * 4];
            float xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
            for (int p = 0; p < 4; ++p)
#pragma unroll
                for (int q = 0; q < 4; ++q) sum[p][q] = fmaf(xs[p], ys[q], sum[p][q]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int p = 0; p < 4; ++p)
        *(float4 *)&c[((size_t)blockIdx.y * 64 + row * 4 + p) * n + blockIdx.x * 64 + column * 4] = make_float4(sum[p][0], sum[p][1], sum[p][2], sum[p][3]);
}
__global__ void __launch_bounds__(128) scores_by_wmma(const bf16 *__restrict__ a, const bf16 *__restrict__ b, float *__restrict__ c, int n, int k) {
    using namespace nvcuda::wmma;
    __shared__ __align__(32) bf16 as[64][32 + 16], bs[32][64 + 16];
    int t = threadIdx.x, warp = t / 32, down = warp / 2 * 32, across = warp % 2 * 32;
    fragment<accumulator, 16, 16, 16, float> sum[2][2];
    for (auto &line : sum)
        for (auto &tile : line) fill_fragment(tile, 0.f);
    const bf16 *arow = a + (size_t)blockIdx.y * 64 * k, *bcolumn = b + blockIdx.x * 64;
    for (int at = 0; at < k; at += 32) {
#pragma unroll
        for (int part = 0; part < 2; ++part) {
            int e = part * 128 + t;  // 256 groups of eight numbers in each tile
            *(uint4 *)&as[e / 4][e % 4 * 8] = *(const uint4 *)&arow[(size_t)(e / 4) * k + at + e % 4 * 8];
            *(uint4 *)&bs[e / 8][e % 8 * 8] = *(const uint4 *)&bcolumn[(size_t)(at + e / 8) * n + e % 8 * 8];
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < 32; j += 16) {
            fragment<matrix_a, 16, 16, 16, bf16, row_major> x[2];
            fragment<matrix_b, 16, 16, 16, bf16, row_major> y[2];
            for (int p = 0; p < 2; ++p) load_matrix_sync(x[p], &as[down + p * 16][j], 48);
            for (int p = 0; p < 2; ++p) load_matrix_sync(y[p], &bs[j][across + p * 16], 80);
            for (int p = 0; p < 2; ++p)
                for (int q = 0; q < 2; ++q) mma_sync(sum[p][q], x[p], y[q], sum[p][q]);
        }
        __syncthreads();
    }
    for (int p = 0; p < 2; ++p)
        for (int q = 0; q < 2; ++q)
            store_matrix_sync(&c[((size_t)blockIdx.y * 64 + down + p * 16) * n + blockIdx.x * 64 + across + q * 16], sum[p][q], n, mem_row_major);
}
template <bool wmma> static Step poses() {
    const int m = 4096, n = 2048, k = 512;
    bf16 *a = buffer<bf16>((size_t)m * k, -1, 1), *b = buffer<bf16>((size_t)k * n, -1, 1);
    float *c = buffer<float>((size_t)m * n), *scaled = buffer<float>((size_t)m * n);
    return [=] {
        if (wmma) LAUNCH(scores_by_wmma, dim3(n / 64, m / 64), 128, 0, a, b, c, n, k);
        else LAUNCH(scores_by_fma, dim3(n / 64, m / 64), 256, 0, a, b, c, n, k);
        LAUNCH(transform, m * n / 256, 256, 0, c, scaled, (size_t)m * n, Scaled{0.05f, 1.f});
    };
}
CASE(poses_ill, "pose-scores") { return poses<false>(); }
CASE(poses_cured, "pose-scores.cured") { return poses<true>(); }

// ---- healthy, compute-bound: interest paths in double on purpose (data and results are double): FP64 units are full.
__global__ void pensions(const double *__restrict__ rate, double *__restrict__ value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double r = 0.01 * rate[i], a = 1, b = 2, c = 3, d = 4;
#pragma unroll 4
    for (int month = 0; month < 480; ++month) {
        a = fma(a, 1 - r, 0.3);
        b = fma(b, 1 - r, a);
        c = fma(c, r, 0.25);
        d = fma(d, r, c);
    }
    value[i] = a + b + c + d;
}
CASE(pensions_healthy, "pension-ladders") {
    const int n = 4 << 20;
    double *rate = buffer<double>(n), *value = buffer<double>(n);
    return [=] { LAUNCH(pensions, n / 256, 256, 0, rate, value, n); };
}

// ---- healthy, dram-bound: pages of 2 KB are gathered by a shuffled index, but whole, 16 bytes a thread: bandwidth of DRAM.
__global__ void shuffled_pages(const uint4 *__restrict__ in, const uint32_t *__restrict__ order, uint4 *__restrict__ out, uint32_t pages) {
    uint32_t page = blockIdx.x * 4 + threadIdx.y;
    const uint4 *from = in + (size_t)order[page] * 128 + threadIdx.x;
    uint4 a = from[0], b = from[64];
    out[(size_t)page * 128 + threadIdx.x] = a;
    out[(size_t)page * 128 + 64 + threadIdx.x] = b;
}
__global__ void order_of_pages(uint32_t *order, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    order[i] = (i * 2654435761u) & (n - 1);
}
CASE(pages_healthy, "shuffled-pages") {
    const uint32_t pages = 1 << 18;  // of 2 KB: 512 MB
    uint4 *in = (uint4 *)buffer<float>((size_t)pages * 512), *out = (uint4 *)buffer<float>((size_t)pages * 512);
    uint32_t *order = buffer<uint32_t>(pages, 0, 1);
    order_of_pages<<<pages / 256, 256>>>(order, pages);
    CHECK(cudaGetLastError());
    return [=] { LAUNCH(shuffled_pages, pages / 4, dim3(64, 4), 0, in, order, out, pages); };
}

// ---- healthy, occupancy-enough: four warps an SM, but sixteen independent chains a thread keep the FP32 units full.
__global__ void __launch_bounds__(128) phase_space(const float *__restrict__ start, float *__restrict__ out, int turns) {
    extern __shared__ float lattice[];
    for (int k = threadIdx.x; k < 40000; k += 128) lattice[k] = start[k];
    __syncthreads();
    float x[16], tune = 0.3f + 1e-4f * threadIdx.x;
#pragma unroll
    for (int k = 0; k < 16; ++k) x[k] = lattice[k * 128 + threadIdx.x];
    float next = lattice[0];
#pragma unroll 2
    for (int turn = 0; turn < turns; ++turn) {
        float kick = next;
        next = lattice[turn + 1];
#pragma unroll
        for (int k = 0; k < 16; ++k) x[k] = fmaf(x[k], tune, kick);
#pragma unroll
        for (int k = 0; k < 16; ++k) x[k] = fmaf(x[k], x[k], tune);
#pragma unroll
        for (int k = 0; k < 16; ++k) x[k] = fmaf(x[k], -0.4f, kick);
    }
    float all = 0;
#pragma unroll
    for (int k = 0; k < 16; ++k) all += x[k];
    out[blockIdx.x * 128 + threadIdx.x] = all;
}
CASE(phase_healthy, "phase-space") {
    float *start = buffer<float>(40000), *out = buffer<float>(132 * 128);
    CHECK(cudaFuncSetAttribute(phase_space, cudaFuncAttributeMaxDynamicSharedMemorySize, 160000));
    return [=] { LAUNCH(phase_space, 132, 128, 160000, start, out, 30000); };
}

// ---- healthy, l2-bound: sums of random rows of 512 bytes of a table of 20 MB: whole lines, which L2 serves.
__global__ void analogues(const float4 *__restrict__ days, const uint32_t *__restrict__ chosen, float4 *__restrict__ forecast, int each) {
    uint32_t lane = threadIdx.x % 32, place = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
    for (int k = 0; k < each; ++k) {
        float4 x = days[(size_t)chosen[place * each + k] * 32 + lane];
        sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
    }
    forecast[(size_t)place * 32 + lane] = sum;
}
CASE(analogues_healthy, "weather-analogues") {
    const int places = 132 * 64 * 8, each = 64, rows = 40960;
    float *days = buffer<float>((size_t)rows * 128), *forecast = buffer<float>((size_t)places * 128);
    uint32_t *chosen = buffer<uint32_t>((size_t)places * each, 0, rows);
    return [=] { LAUNCH(analogues, places / 8, 256, 0, (float4 *)days, chosen, (float4 *)forecast, each); };
}

int main(int argc, char **argv) { return run_cases(argc, argv); }
