// The fifth part's kernels: steps of programs of yet other fields, each with an illness in a kernel, or none. NAME.cured is the
// same work without it. Names of kernels are neutral, and some steps have healthy neighbours.
#include "harness.h"

#include <algorithm>

#define M (1 << 20)
#define EACH(i, n) (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < (n); i += (size_t)gridDim.x * blockDim.x)

// Healthy company: a discount, 16 bytes a thread; DRAM binds.
__global__ void discount(float4 *x, float rate, size_t n) {
    for EACH(i, n) {
        float4 p = x[i];
        x[i] = make_float4(p.x * rate, p.y * rate, p.z * rate, p.w * rate);
    }
}

// uncoalesced-access: prices of a path's 256 days lie together, a thread has a path (ill: a warp's stores and loads go to 32 lines, LSU and L2 bind),
// or a day's prices lie together (cured: DRAM binds)
template <bool BY_PATH> __global__ void simulate(const float *__restrict__ draws, float *prices, int paths, int days) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 100.0f;
#pragma unroll 4
    for (int d = 0; d < days; ++d) {
        s *= fmaf(0.02f, draws[(size_t)d * paths + p], 0.9901f);
        prices[BY_PATH ? (size_t)p * days + d : (size_t)d * paths + p] = s;
    }
}
template <bool BY_PATH> __global__ void settle(const float *__restrict__ prices, float *paid, int paths, int days, float strike) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0, high = 0;
#pragma unroll 4
    for (int d = 0; d < days; ++d) {
        float s = prices[BY_PATH ? (size_t)p * days + d : (size_t)d * paths + p];
        sum += s, high = fmaxf(high, s);
    }
    paid[p] = high > 1.3f * strike ? 0.0f : fmaxf(sum / days - strike, 0.0f);
}
static Step asian(bool by_path) {
    int paths = M / 2, days = 256;
    float *draws = buffer<float>((size_t)paths * days), *prices = buffer<float>((size_t)paths * days), *paid = buffer<float>(paths);
    return [=] {
        if (by_path) {
            LAUNCH(simulate<true>, paths / 128, 128, 0, draws, prices, paths, days);
            LAUNCH(settle<true>, paths / 128, 128, 0, prices, paid, paths, days, 100.0f);
        } else {
            LAUNCH(simulate<false>, paths / 128, 128, 0, draws, prices, paths, days);
            LAUNCH(settle<false>, paths / 128, 128, 0, prices, paid, paths, days, 100.0f);
        }
        LAUNCH(discount, 512, 256, 0, (float4 *)paid, 0.999f, (size_t)paths / 4);
    };
}
CASE(asian_ill, "asian-options") { return asian(true); }
CASE(asian_cured, "asian-options.cured") { return asian(false); }

// random-gather: normals of 16 million triangles, whose corners are numbered at random (ill: 9 sectors of 32 bytes a triangle from DRAM, for 36 bytes)
// or along the surface (cured)
__global__ void corners(int *corner, size_t triangles, uint32_t vertices, bool shuffled) {
    for EACH(e, 3 * triangles) {
        uint32_t t = e % triangles, k = e / triangles, v = (2 * t + (k == 1 ? 1 : k == 2 ? 4096 : 0)) % vertices;
        corner[e] = shuffled ? hashed(v * 2654435761u + 99) % vertices : v;
    }
}
__global__ void orient(const float *__restrict__ x, const float *__restrict__ y, const float *__restrict__ z, const int *__restrict__ corner, float *nx,
                       float *ny, float *nz, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    int a = corner[t], b = corner[n + t], c = corner[2 * (size_t)n + t];
    float ux = x[b] - x[a], uy = y[b] - y[a], uz = z[b] - z[a], vx = x[c] - x[a], vy = y[c] - y[a], vz = z[c] - z[a];
    nx[t] = uy * vz - uz * vy, ny[t] = uz * vx - ux * vz, nz[t] = ux * vy - uy * vx;
}
__global__ void shade(const float *__restrict__ nx, const float *__restrict__ ny, const float *__restrict__ nz, float *light, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t < n) light[t] = fmaxf(0.3f * nx[t] + 0.5f * ny[t] + 0.8f * nz[t], 0.0f) * rsqrtf(nx[t] * nx[t] + ny[t] * ny[t] + nz[t] * nz[t] + 1e-9f);
}
static Step surface(bool shuffled) {
    int n = 16 * M, vertices = 32 * M;
    float *x = buffer<float>(vertices), *y = buffer<float>(vertices), *z = buffer<float>(vertices);
    float *nx = buffer<float>(n), *ny = buffer<float>(n), *nz = buffer<float>(n), *light = buffer<float>(n);
    int *corner = buffer<int>(3 * (size_t)n);
    corners<<<2112, 256>>>(corner, n, vertices, shuffled);
    CHECK(cudaGetLastError());
    return [=] {
        LAUNCH(orient, n / 256, 256, 0, x, y, z, corner, nx, ny, nz, n);
        LAUNCH(shade, n / 256, 256, 0, nx, ny, nz, light, n);
    };
}
CASE(surface_ill, "scanned-surface") { return surface(true); }
CASE(surface_cured, "scanned-surface.cured") { return surface(false); }

// narrow-access: the brightest of 3 by 3 bytes: a pixel a thread, ten instructions of a byte (ill: LSU binds), or 16 pixels a thread (cured: DRAM binds)
__global__ void spread(const uint8_t *__restrict__ in, uint8_t *out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + 16, y = blockIdx.y + 1;
    if (x >= w - 16) return;
    int most = 0;
#pragma unroll
    for (int dy = -1; dy <= 1; ++dy)
#pragma unroll
        for (int dx = -1; dx <= 1; ++dx) most = max(most, (int)in[(size_t)(y + dy) * w + x + dx]);
    out[(size_t)y * w + x] = most;
}
__global__ void spread16(const uint8_t *__restrict__ in, uint8_t *out, int w, int h) {
    int x = (blockIdx.x * blockDim.x + threadIdx.x + 1) * 16, y = blockIdx.y + 1;
    if (x >= w - 16) return;
    uint32_t column[6] = {0, 0, 0, 0, 0, 0};
#pragma unroll
    for (int dy = -1; dy <= 1; ++dy) {
        const uint8_t *row = in + (size_t)(y + dy) * w + x;
        uint4 v = *(const uint4 *)row;
        column[0] = __vmaxu4(column[0], *(const uint32_t *)(row - 4)), column[5] = __vmaxu4(column[5], *(const uint32_t *)(row + 16));
        column[1] = __vmaxu4(column[1], v.x), column[2] = __vmaxu4(column[2], v.y), column[3] = __vmaxu4(column[3], v.z), column[4] = __vmaxu4(column[4], v.w);
    }
    uint32_t r[4];
#pragma unroll
    for (int k = 1; k <= 4; ++k)
        r[k - 1] = __vmaxu4(column[k], __vmaxu4(__funnelshift_l(column[k - 1], column[k], 8), __funnelshift_r(column[k], column[k + 1], 8)));
    *(uint4 *)(out + (size_t)y * w + x) = make_uint4(r[0], r[1], r[2], r[3]);
}
static Step spots(bool bytes) {
    int w = 16384, h = 16384;
    uint8_t *a = buffer<uint8_t>((size_t)w * h, 0, 255), *b = buffer<uint8_t>((size_t)w * h);
    return [=] {
        for (int round = 0; round < 2; ++round)
            if (bytes)
                LAUNCH(spread, dim3(w / 256, h - 2), 256, 0, round ? b : a, round ? a : b, w, h);
            else
                LAUNCH(spread16, dim3(w / 16 / 128, h - 2), 128, 0, round ? b : a, round ? a : b, w, h);
    };
}
CASE(spots_ill, "spots-on-plates") { return spots(true); }
CASE(spots_cured, "spots-on-plates.cured") { return spots(false); }

// bank-conflicts: distances of cells to 32 marker profiles of a tile, a row a lane: rows of 32 floats (ill: 8 to 32 wavefronts a load bind) or 33 (cured)
template <int ROW> __global__ void nearest(const float *__restrict__ cells, const float *__restrict__ markers, float *least, int n, int profiles) {
    __shared__ __align__(16) float tile[32 * ROW], own[64][32];
    int lane = threadIdx.x, warp = threadIdx.y;
    for (int k = warp; k < 64; k += 8) own[k][lane] = cells[((size_t)blockIdx.x * 64 + k) * 32 + lane];
    float best[8];
#pragma unroll
    for (int q = 0; q < 8; ++q) best[q] = 1e30f;
    for (int p = 0; p < profiles; p += 32) {
        __syncthreads();
        for (int k = warp; k < 32; k += 8) tile[k * ROW + lane] = markers[(p + k) * 32 + lane];
        __syncthreads();
        float sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
#pragma unroll 4
        for (int d = 0; d < 32; ++d) {
            float m = tile[lane * ROW + d];
#pragma unroll
            for (int q = 0; q < 8; ++q) {
                float e = own[warp * 8 + q][d] - m;
                sum[q] = fmaf(e, e, sum[q]);
            }
        }
#pragma unroll
        for (int q = 0; q < 8; ++q) best[q] = fminf(best[q], sum[q]);
    }
#pragma unroll
    for (int q = 0; q < 8; ++q) {
        for (int step = 16; step; step /= 2) best[q] = fminf(best[q], __shfl_xor_sync(~0u, best[q], step));
        if (lane == 0) least[(size_t)blockIdx.x * 64 + warp * 8 + q] = best[q];
    }
}
static Step markers(bool padded) {
    int n = 512 * 1024, profiles = 512;
    float *cells = buffer<float>((size_t)n * 32), *rows = buffer<float>(profiles * 32), *least = buffer<float>(n);
    return [=] {
        if (padded)
            LAUNCH(nearest<33>, n / 64, dim3(32, 8), 0, cells, rows, least, n, profiles);
        else
            LAUNCH(nearest<32>, n / 64, dim3(32, 8), 0, cells, rows, least, n, profiles);
    };
}
CASE(markers_ill, "marker-genes") { return markers(false); }
CASE(markers_cured, "marker-genes.cured") { return markers(true); }

// register-spills: a Kalman filter of 6 numbers and 36 covariances a track, with 32 registers a thread by its launch bounds (ill: local memory binds)
// or as many as it needs (cured: FMA)
template <int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS) follow(const float *__restrict__ hits, float *states, int n, int layers) {
    int t = blockIdx.x * THREADS + threadIdx.x;
    float x[6], c[6][6];
#pragma unroll
    for (int i = 0; i < 6; ++i) {
        x[i] = states[i * (size_t)n + t];
#pragma unroll
        for (int j = 0; j < 6; ++j) c[i][j] = i == j ? 1.0f : 0.01f * x[i];
    }
    for (int layer = 0; layer < layers; ++layer) {
        float dt = 0.1f + 0.001f * layer;
#pragma unroll
        for (int i = 0; i < 3; ++i) x[i] = fmaf(dt, x[i + 3], x[i]);
#pragma unroll
        for (int j = 0; j < 6; ++j)
#pragma unroll
            for (int i = 0; i < 3; ++i) c[i][j] = fmaf(dt, c[i + 3][j], c[i][j]);
#pragma unroll
        for (int i = 0; i < 6; ++i)
#pragma unroll
            for (int j = 0; j < 3; ++j) c[i][j] = fmaf(dt, c[i][j + 3], c[i][j]);
#pragma unroll
        for (int axis = 0; axis < 2; ++axis) {
            float weight = __fdividef(1.0f, c[axis][axis] + 0.3f), gone = hits[(size_t)(layer * 2 + axis) * n + t] - x[axis], gain[6], row[6];
#pragma unroll
            for (int i = 0; i < 6; ++i) gain[i] = c[i][axis] * weight, row[i] = c[axis][i];
#pragma unroll
            for (int i = 0; i < 6; ++i) {
                x[i] = fmaf(gain[i], gone, x[i]);
#pragma unroll
                for (int j = 0; j < 6; ++j) c[i][j] = fmaf(-gain[i], row[j], c[i][j]);
            }
        }
    }
    float size = 0;
#pragma unroll
    for (int i = 0; i < 6; ++i)
#pragma unroll
        for (int j = 0; j < 6; ++j) size += c[i][j];
#pragma unroll
    for (int i = 0; i < 6; ++i) states[i * (size_t)n + t] = 0.5f * x[i] + 1e-6f * size;
}
static Step tracks(bool bounded) {
    int n = 2 * M, layers = 24;
    float *hits = buffer<float>((size_t)n * layers * 2), *states = buffer<float>(6 * (size_t)n);
    return [=] {
        if (bounded)
            LAUNCH((follow<1024, 2>), n / 1024, 1024, 0, hits, states, n, layers);
        else
            LAUNCH((follow<128, 1>), n / 128, 128, 0, hits, states, n, layers);
    };
}
CASE(tracks_ill, "tracks-of-muons") { return tracks(true); }
CASE(tracks_cured, "tracks-of-muons.cured") { return tracks(false); }

// local-array-indexing: 16 states of a trellis, whose predecessors come from a table in memory (ill: the array of scores lies in local memory, LSU binds) or
// are known to the compiler (cured: ALU)
__constant__ int before[2][16] = {{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7}, {8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15}};
template <bool TABLE> __global__ void decode(const float2 *__restrict__ soft, float *score, int n, int length) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float last[16];
#pragma unroll
    for (int s = 0; s < 16; ++s) last[s] = s ? -9.0f : 0.0f;
    for (int t = 0; t < length; ++t) {
        float2 v = soft[(size_t)t * n + i];
        float next[16];
#pragma unroll
        for (int s = 0; s < 16; ++s) {
            float e = ((s ^ s >> 2) & 1 ? v.x : -v.x) + ((s ^ s >> 3) & 1 ? v.y : -v.y);
            next[s] = fmaxf(last[TABLE ? before[0][s] : s >> 1] + e, last[TABLE ? before[1][s] : (s >> 1) + 8] - e);
        }
#pragma unroll
        for (int s = 0; s < 16; ++s) last[s] = next[s];
    }
    float best = -1e30f;
#pragma unroll
    for (int s = 0; s < 16; ++s) best = fmaxf(best, last[s]);
    score[i] = best;
}
static Step trellis(bool table) {
    int n = M, length = 128;
    float2 *soft = (float2 *)buffer<float>(2 * (size_t)n * length);
    float *score = buffer<float>(n);
    return [=] {
        if (table)
            LAUNCH(decode<true>, n / 128, 128, 0, soft, score, n, length);
        else
            LAUNCH(decode<false>, n / 128, 128, 0, soft, score, n, length);
    };
}
CASE(trellis_ill, "deep-space-link") { return trellis(true); }
CASE(trellis_cured, "deep-space-link.cured") { return trellis(false); }

// divergence: particles lose energy layer by layer until they stop; one of 32 goes 30 times as far: in the order of arrival (ill: most lanes wait for one),
// or by energy, the far ones first (cured)
__global__ void energies(float *energy, int n, bool ordered) {
    for EACH(i, (size_t)n) {
        bool far = ordered ? i < (size_t)n / 32 : hashed((uint32_t)i) % 32 == 0;
        energy[i] = (far ? 600.0f : 20.0f) + hashed((uint32_t)i * 7u) % 8;
    }
}
__global__ void stop_in_matter(const float *__restrict__ energy, float *depth, float *heat, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float e = energy[i], z = 0, dose = 0, spread = 1;
    while (e > 1.0f) {
        float loss = fmaf(1e-4f, spread, 1.0f);
        spread = fmaf(0.9f, spread, 0.01f * loss), dose = fmaf(loss, spread, dose), z = fmaf(0.1f, loss, z);
        dose = fmaf(dose, 0.9999f, 1e-3f * z), e -= loss;
    }
    depth[i] = z, heat[i] = dose;
}
static Step showers(bool ordered) {
    int n = 16 * M;
    float *energy = buffer<float>(n), *depth = buffer<float>(n), *heat = buffer<float>(n);
    energies<<<1024, 256>>>(energy, n, ordered);
    CHECK(cudaGetLastError());
    return [=] {
        LAUNCH(stop_in_matter, n / 128, 128, 0, energy, depth, heat, n);
        LAUNCH(discount, 2112, 256, 0, (float4 *)heat, 0.5f, (size_t)n / 4);
    };
}
CASE(showers_ill, "dose-in-tissue") { return showers(false); }
CASE(showers_cured, "dose-in-tissue.cured") { return showers(true); }

// fp64-by-accident: a display's curve by pow with double constants (ill: some 100 FP64 instructions a value bind) or floats (cured)
__global__ void curve(float *c, size_t n) {
    for EACH(i, n) {
        float v = c[i];
        c[i] = v < 0.0031308 ? v * 12.92 : 1.055 * pow(v, 1.0 / 2.4) - 0.055;
    }
}
__global__ void curve_f(float *c, size_t n) {
    for EACH(i, n) {
        float v = c[i];
        c[i] = v < 0.0031308f ? v * 12.92f : 1.055f * powf(v, 1.0f / 2.4f) - 0.055f;
    }
}
__global__ void blend(const float4 *__restrict__ from, float4 *to, float part, size_t n) {
    for EACH(i, n) {
        float4 a = from[i], b = to[i];
        to[i] = make_float4(fmaf(part, a.x - b.x, b.x), fmaf(part, a.y - b.y, b.y), fmaf(part, a.z - b.z, b.z), fmaf(part, a.w - b.w, b.w));
    }
}
static Step film(bool doubles) {
    size_t n = 3 * (size_t)24 * M;
    float *frame = buffer<float>(n, 0, 1), *next = buffer<float>(n, 0, 1);
    return [=] {
        LAUNCH(blend, 4224, 256, 0, (const float4 *)next, (float4 *)frame, 0.2f, n / 4);
        if (doubles)
            LAUNCH(curve, 4224, 256, 0, frame, n);
        else
            LAUNCH(curve_f, 4224, 256, 0, frame, n);
    };
}
CASE(film_ill, "frames-for-display") { return film(true); }
CASE(film_cured, "frames-for-display.cured") { return film(false); }

// special-functions: a periodogram: a sine and a cosine for each time and frequency (ill: XU binds), or for each eighth frequency, and the others by rotation
// (cured: FMA)
template <int EIGHT> __global__ void period(const float2 *__restrict__ seen, float *power, int times, float df) {
    __shared__ float2 part[256];
    int first = (blockIdx.x * 256 + threadIdx.x) * EIGHT;
    float re[EIGHT] = {}, im[EIGHT] = {};
    for (int t = 0; t < times; t += 256) {
        __syncthreads();
        part[threadIdx.x] = seen[t + threadIdx.x];
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < 256; ++k) {
            float2 at = part[k];
            float s, c, ds = 0, dc = 1;
            __sincosf(at.x * (first * df), &s, &c);
            if (EIGHT > 1) __sincosf(at.x * df, &ds, &dc);
#pragma unroll
            for (int f = 0; f < EIGHT; ++f) {
                re[f] = fmaf(at.y, c, re[f]), im[f] = fmaf(at.y, s, im[f]);
                float turned = c * dc - s * ds;
                s = s * dc + c * ds, c = turned;
            }
        }
    }
#pragma unroll
    for (int f = 0; f < EIGHT; ++f) power[first + f] = re[f] * re[f] + im[f] * im[f];
}
static Step stars(bool each) {
    int frequencies = 270336, times = 8192;  // 1056 blocks of 256
    float2 *seen = (float2 *)buffer<float>(2 * times);
    float *power = buffer<float>(frequencies);
    return [=] {
        if (each)
            LAUNCH(period<1>, frequencies / 256, 256, 0, seen, power, times, 1e-4f);
        else
            LAUNCH(period<8>, frequencies / 256 / 8, 256, 0, seen, power, times, 1e-4f);
    };
}
CASE(stars_ill, "variable-stars") { return stars(true); }
CASE(stars_cured, "variable-stars.cured") { return stars(false); }

// integer-division: sites of a lattice of four dimensions are found by / and %, of sizes known at run time (ill: ALU binds) or by the grid (cured: DRAM)
__global__ void relax(const float *__restrict__ phi, float *out, size_t nx, size_t ny, size_t nz, size_t nt) {
    size_t n = nx * ny * nz * nt;
    for EACH(site, n) {
        size_t x = site % nx, y = site / nx % ny, z = site / (nx * ny) % nz, t = site / (nx * ny * nz);
        auto at = [&](size_t x, size_t y, size_t z, size_t t) { return phi[((t % nt * nz + z % nz) * ny + y % ny) * nx + x % nx]; };
        float own = phi[site], sum = at(x + 1, y, z, t) + at(x + nx - 1, y, z, t) + at(x, y + 1, z, t) + at(x, y + ny - 1, z, t) + at(x, y, z + 1, t) +
                                     at(x, y, z + nz - 1, t) + at(x, y, z, t + 1) + at(x, y, z, t + nt - 1);
        out[site] = fmaf(0.1f, sum - 8.0f * own - own * own * own, own);
    }
}
__global__ void relax_grid(const float *__restrict__ phi, float *out, int nx, int ny, int nz, int nt) {
    int x = threadIdx.x, y = blockIdx.x * blockDim.y + threadIdx.y, z = blockIdx.y, t = blockIdx.z;
    if (y >= ny) return;
    auto at = [&](int x, int y, int z, int t) { return phi[((t * nz + z) * ny + y) * nx + x]; };
    int right = x + 1 < nx ? x + 1 : 0, left = x ? x - 1 : nx - 1, up = y + 1 < ny ? y + 1 : 0, down = y ? y - 1 : ny - 1;
    float own = at(x, y, z, t), sum = at(right, y, z, t) + at(left, y, z, t) + at(x, up, z, t) + at(x, down, z, t) + at(x, y, z + 1 < nz ? z + 1 : 0, t) +
                                      at(x, y, z ? z - 1 : nz - 1, t) + at(x, y, z, t + 1 < nt ? t + 1 : 0) + at(x, y, z, t ? t - 1 : nt - 1);
    out[((t * nz + z) * ny + y) * nx + x] = fmaf(0.1f, sum - 8.0f * own - own * own * own, own);
}
static Step quantum(bool divides) {
    int n = 96;
    size_t sites = (size_t)n * n * n * n;
    float *a = buffer<float>(sites), *b = buffer<float>(sites);
    return [=] {
        if (divides)
            LAUNCH(relax, 8448, 256, 0, a, b, (size_t)n, (size_t)n, (size_t)n, (size_t)n);
        else
            LAUNCH(relax_grid, dim3(n / 4, n, n), dim3(n, 4), 0, a, b, n, n, n, n);
    };
}
CASE(quantum_ill, "scalar-field") { return quantum(true); }
CASE(quantum_cured, "scalar-field.cured") { return quantum(false); }

// unfused-multiply-add: products of complex matrices of 3 by 3 along a loop, rounded as on the host (ill: twice the instructions on the FMA pipe) or not (cured)
template <bool ROUNDED> __device__ inline float plus_product(float sum, float a, float b) {
    return ROUNDED ? __fadd_rn(sum, __fmul_rn(a, b)) : fmaf(a, b, sum);
}
template <bool ROUNDED> __global__ void __launch_bounds__(128) carry(const float *__restrict__ links, float *out, int n, int loops) {
    int i = blockIdx.x * 128 + threadIdx.x;
    float u[18], v[18];
#pragma unroll
    for (int k = 0; k < 18; ++k) u[k] = 0.3f * links[k * (size_t)n + i], v[k] = u[k] + (k % 8 == 0);
    for (int loop = 0; loop < loops; ++loop) {
#pragma unroll
        for (int row = 0; row < 3; ++row) {
            float w[6];
#pragma unroll
            for (int col = 0; col < 3; ++col) {
                float re = 0.001f, im = 0.002f;
#pragma unroll
                for (int k = 0; k < 3; ++k) {
                    float ar = v[2 * (3 * row + k)], ai = v[2 * (3 * row + k) + 1], br = u[2 * (3 * k + col)], bi = u[2 * (3 * k + col) + 1];
                    re = plus_product<ROUNDED>(plus_product<ROUNDED>(re, ar, br), -ai, bi);
                    im = plus_product<ROUNDED>(plus_product<ROUNDED>(im, ar, bi), ai, br);
                }
                w[2 * col] = re, w[2 * col + 1] = im;
            }
#pragma unroll
            for (int k = 0; k < 6; ++k) v[6 * row + k] = w[k];
        }
    }
#pragma unroll
    for (int k = 0; k < 18; ++k) out[k * (size_t)n + i] = v[k];
}
static Step loops(bool rounded) {
    int n = M;
    float *links = buffer<float>(18 * (size_t)n, -0.5, 0.5), *out = buffer<float>(18 * (size_t)n);
    return [=] {
        if (rounded)
            LAUNCH(carry<true>, n / 128, 128, 0, links, out, n, 160);
        else
            LAUNCH(carry<false>, n / 128, 128, 0, links, out, n, 160);
    };
}
CASE(loops_ill, "gauge-loops") { return loops(true); }
CASE(loops_cured, "gauge-loops.cured") { return loops(false); }

// unfused-multiply-add, in FP64 by need: places of planets by Chebyshev's series: a product, a difference, a sum (ill: 3 instructions a term) or one and a sum
// (cured: 2; the FP64 pipe binds both)
template <bool ROUNDED> __global__ void places(const double *__restrict__ series, double *out, int n, int terms) {
    __shared__ double c[3 * 256];
    for (int k = threadIdx.x; k < 3 * terms; k += blockDim.x) c[k] = series[blockIdx.y * 3 * terms + k];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double x = 2.0 * i / n - 1.0, twice = 2 * x, b1[3] = {0, 0, 0}, b2[3] = {0, 0, 0};
#pragma unroll 4
    for (int k = terms - 1; k > 0; --k)
#pragma unroll
        for (int axis = 0; axis < 3; ++axis) {
            double rest = __dadd_rn(c[3 * k + axis], -b2[axis]), b0 = ROUNDED ? __dadd_rn(__dmul_rn(twice, b1[axis]), rest) : fma(twice, b1[axis], rest);
            b2[axis] = b1[axis], b1[axis] = b0;
        }
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) out[((size_t)blockIdx.y * 3 + axis) * n + i] = x * b1[axis] - b2[axis] + c[axis];
}
static Step planets(bool rounded) {
    int n = 256 * 1024, bodies = 64, terms = 256;
    double *series = buffer<double>(bodies * 3 * terms, -1, 1), *out = buffer<double>((size_t)bodies * 3 * n);
    return [=] {
        if (rounded)
            LAUNCH(places<true>, dim3(n / 256, bodies), 256, 0, series, out, n, terms);
        else
            LAUNCH(places<false>, dim3(n / 256, bodies), 256, 0, series, out, n, terms);
    };
}
CASE(planets_ill, "ephemerides") { return planets(true); }
CASE(planets_cured, "ephemerides.cured") { return planets(false); }

// contended-atomics: photons by detector strip, nine of ten on four strips, counted in global memory (ill: few L2 lines serve all) or a block's first (cured)
__global__ void hits_of(uint32_t *strip, size_t n) {
    for EACH(i, n) {
        uint32_t h = hashed((uint32_t)i);
        strip[i] = h % 10 ? 97 + (h >> 8) % 4 : (h >> 8) % 1024;
    }
}
__global__ void tally(const uint32_t *__restrict__ strip, uint32_t *count, size_t n) {
    for EACH(i, n) atomicAdd(&count[strip[i]], 1u);
}
__global__ void tally_own(const uint32_t *__restrict__ strip, uint32_t *count, size_t n) {
    __shared__ uint32_t own[1024];
    for (int k = threadIdx.x; k < 1024; k += blockDim.x) own[k] = 0;
    __syncthreads();
    for EACH(i, n) atomicAdd(&own[strip[i]], 1u);
    __syncthreads();
    for (int k = threadIdx.x; k < 1024; k += blockDim.x)
        if (own[k]) atomicAdd(&count[k], own[k]);
}
static Step photons(bool own) {
    size_t n = 16 * M, pixels = 64 * M;
    uint32_t *strip = buffer<uint32_t>(n), *count = buffer<uint32_t>(1024);
    float *charge = buffer<float>(pixels);
    hits_of<<<1024, 256>>>(strip, n);
    CHECK(cudaGetLastError());
    return [=] {
        LAUNCH(discount, 4224, 256, 0, (float4 *)charge, 0.99f, pixels / 4);
        if (own)
            LAUNCH(tally_own, 528, 512, 0, strip, count, n);
        else
            LAUNCH(tally, 1056, 512, 0, strip, count, n);
    };
}
CASE(photons_ill, "photons-by-strip") { return photons(false); }
CASE(photons_cured, "photons-by-strip.cured") { return photons(true); }

// barriers: mass spectra of 512 bins are scaled by their largest, sum and square: three trees over a block's shared memory (ill: 30 barriers for one load and
// store a thread), or a warp a spectrum (cured: DRAM)
__global__ void scale_spectra(const float *__restrict__ in, float *out) {
    __shared__ float tree[512];
    int k = threadIdx.x;
    float v = in[(size_t)blockIdx.x * 512 + k];
    float found[3];
#pragma unroll
    for (int what = 0; what < 3; ++what) {
        tree[k] = what == 2 ? v * v : v;
        __syncthreads();
        for (int half = 256; half; half /= 2) {
            if (k < half) tree[k] = what ? tree[k] + tree[k + half] : fmaxf(tree[k], tree[k + half]);
            __syncthreads();
        }
        found[what] = tree[0];
        __syncthreads();
    }
    out[(size_t)blockIdx.x * 512 + k] = (v - found[1] * (1.0f / 512)) * rsqrtf(found[2] + 1e-6f) + found[0];
}
__global__ void scale_spectra_warp(const float4 *__restrict__ in, float4 *out) {
    size_t row = (blockIdx.x * (size_t)blockDim.x + threadIdx.x) / 32 * 128 + threadIdx.x % 32;
    float4 v[4];
    float most = -1e30f, sum = 0, square = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        v[k] = in[row + 32 * k];
        most = fmaxf(most, fmaxf(fmaxf(v[k].x, v[k].y), fmaxf(v[k].z, v[k].w)));
        sum += v[k].x + v[k].y + v[k].z + v[k].w;
        square += v[k].x * v[k].x + v[k].y * v[k].y + v[k].z * v[k].z + v[k].w * v[k].w;
    }
#pragma unroll
    for (int step = 16; step; step /= 2) {
        most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
        sum += __shfl_xor_sync(~0u, sum, step), square += __shfl_xor_sync(~0u, square, step);
    }
    float mean = sum * (1.0f / 512), each = rsqrtf(square + 1e-6f);
#pragma unroll
    for (int k = 0; k < 4; ++k)
        out[row + 32 * k] = make_float4((v[k].x - mean) * each + most, (v[k].y - mean) * each + most, (v[k].z - mean) * each + most, (v[k].w - mean) * each + most);
}
static Step spectra(bool trees) {
    int rows = 512 * 1024;
    float *in = buffer<float>((size_t)rows * 512), *out = buffer<float>((size_t)rows * 512);
    return [=] {
        if (trees)
            LAUNCH(scale_spectra, rows, 512, 0, in, out);
        else
            LAUNCH(scale_spectra_warp, rows / 8, 256, 0, (const float4 *)in, (float4 *)out);
    };
}
CASE(spectra_ill, "mass-spectra") { return spectra(true); }
CASE(spectra_cured, "mass-spectra.cured") { return spectra(false); }

// tail-wave: 272 blocks of equal work, of which an SM holds one, are two waves and 8 blocks (ill), or eight times as many of an eighth each (cured)
__global__ void __launch_bounds__(1024) walk(const float *__restrict__ table, float *out, int rounds, int pieces) {
    extern __shared__ float rates[];
    for (int k = threadIdx.x; k < 30000; k += 1024) rates[k] = table[k];
    __syncthreads();
    float a = threadIdx.x * 1e-3f, b = a + 0.1f, c = a + 0.2f, d = a + 0.3f;
    int at = (blockIdx.x / pieces * 37 + threadIdx.x) % 20000;
    for (int r = 0; r < rounds / pieces; ++r) {
        float w = rates[at + r % 8192];
#pragma unroll
        for (int k = 0; k < 8; ++k) a = fmaf(a, 0.99f, w), b = fmaf(b, 0.98f, a), c = fmaf(c, 0.97f, w), d = fmaf(d, 0.96f, c);
    }
    out[blockIdx.x * (size_t)1024 + threadIdx.x] = a + b + c + d;
}
static Step patients(int pieces) {
    float *table = buffer<float>(30000), *out = buffer<float>((size_t)272 * 1024 * 8);
    CHECK(cudaFuncSetAttribute(walk, cudaFuncAttributeMaxDynamicSharedMemorySize, 120000));
    return [=] { LAUNCH(walk, 272 * pieces, 1024, 120000, table, out, 4096, pieces); };
}
CASE(patients_ill, "cohort-of-patients") { return patients(1); }
CASE(patients_cured, "cohort-of-patients.cured") { return patients(8); }

// unequal-blocks: potentials in groups of galaxies, a block each, of which a few have 20 times as many (ill: 4 SMs work on long after the others), or tiles
// of 256 galaxies, the large groups' first (cured)
__global__ void potentials(const float4 *__restrict__ bodies, const int4 *__restrict__ work, float *out) {
    __shared__ float4 part[256];
    int4 job = work[blockIdx.x];  // first and number of the group; first and last tile
    for (int tile = job.z; tile < job.w; ++tile) {
        int own = job.x + min(tile * 256 + (int)threadIdx.x, job.y - 1);
        float4 p = bodies[own];
        float sum = 0;
        for (int from = 0; from < job.y; from += 256) {
            __syncthreads();
            part[threadIdx.x] = bodies[job.x + min(from + (int)threadIdx.x, job.y - 1)];
            __syncthreads();
#pragma unroll 8
            for (int k = 0; k < 256; ++k) {
                float dx = part[k].x - p.x, dy = part[k].y - p.y, dz = part[k].z - p.z;
                sum = fmaf(part[k].w, rsqrtf(fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, 0.01f)))), sum);
            }
        }
        out[own] = sum;
    }
}
static Step halos(bool tiled) {
    std::vector<int4> work;
    int first = 0;
    for (int halo = 0; halo < 4000; ++halo) {
        int size = halo % 1000 == 700 ? 6144 : 256 * (1 + halo % 2);
        if (tiled)
            for (int tile = 0; tile < size / 256; ++tile) work.push_back(make_int4(first, size, tile, tile + 1));
        else
            work.push_back(make_int4(first, size, 0, size / 256));
        first += size;
    }
    if (tiled) std::stable_sort(work.begin(), work.end(), [](int4 a, int4 b) { return a.y > b.y; });
    float4 *bodies = (float4 *)buffer<float>(4 * (size_t)first);
    float *out = buffer<float>(first);
    int4 *jobs = copied(work);
    int blocks = work.size();
    return [=] { LAUNCH(potentials, blocks, 256, 0, bodies, jobs, out); };
}
CASE(halos_ill, "groups-of-galaxies") { return halos(false); }
CASE(halos_cured, "groups-of-galaxies.cured") { return halos(true); }

// occupancy-shared-memory: plucked strings with delay lines in shared memory, for the longest string there could be (ill: 128 kB a block of 64, two warps an SM wait
// for DRAM) or there is (cured: 12 blocks an SM)
__global__ void pluck(const float *__restrict__ noise, float *sound, int voices, int samples, int longest) {
    extern __shared__ float line[];
    int voice = blockIdx.x * 64 + threadIdx.x, length = 24 + voice % 37, at = 0;
    for (int k = 0; k < 64; ++k) line[k * 64 + threadIdx.x] = 0;
    float last = 0;
#pragma unroll 1
    for (int t = 0; t < samples; ++t) {
        float next = line[at * 64 + threadIdx.x], y = fmaf(0.498f, next + last, noise[(size_t)t * voices + voice]);
        line[at * 64 + threadIdx.x] = y, last = next;
        sound[(size_t)t * voices + voice] = y;
        at = at + 1 < length ? at + 1 : 0;
    }
}
static Step strings(int longest) {
    int voices = 132 * 64 * 12, samples = 512;
    float *noise = buffer<float>((size_t)voices * samples), *sound = buffer<float>((size_t)voices * samples);
    CHECK(cudaFuncSetAttribute(pluck, cudaFuncAttributeMaxDynamicSharedMemorySize, 512 * 64 * 4));
    return [=] { LAUNCH(pluck, voices / 64, 64, longest * 64 * 4, noise, sound, voices, samples, longest); };
}
CASE(strings_ill, "plucked-strings") { return strings(512); }
CASE(strings_cured, "plucked-strings.cured") { return strings(64); }

// occupancy-registers: packets of rays go from brick to brick, each step after the load of the one before; then their light is spread over 160 bands, held in
// registers: in one kernel (ill: its registers leave 8 to 12 warps an SM, which wait for DRAM on the way) or in two (cured: 64 warps on the way)
__constant__ float band[160];
__device__ inline float wander(const float *__restrict__ bricks, uint32_t many, int ray, int lane, int steps) {
    uint32_t brick = hashed(ray);
    float depth = 0;
#pragma unroll 1
    for (int s = 0; s < steps; ++s) {
        float density = bricks[(size_t)(brick & (many - 1)) * 32 + lane];
        brick = hashed(brick + (__any_sync(~0u, density > 0.99f) ? 1 : 2));
        depth = fmaf(0.99f, depth, density);
    }
    return depth;
}
__device__ inline void colour(float depth, float *out, int ray, int lane) {
    float light[160];
#pragma unroll
    for (int b = 0; b < 160; ++b) light[b] = 1e-3f * b;
#pragma unroll 1
    for (int s = 0; s < 8; ++s) {
        float all = 0;
#pragma unroll
        for (int b = 0; b < 160; ++b) light[b] = fmaf(light[b], band[b], depth), all += light[b];
        depth = 1e-3f * all;
    }
#pragma unroll
    for (int b = 0; b < 160; ++b) out[((size_t)ray * 160 + b) * 32 + lane] = light[b];
}
__global__ void __launch_bounds__(128) render(const float *__restrict__ bricks, float *out, uint32_t many, int steps) {
    int ray = blockIdx.x * 4 + threadIdx.y;
    colour(wander(bricks, many, ray, threadIdx.x, steps), out, ray, threadIdx.x);
}
__global__ void __launch_bounds__(128) go(const float *__restrict__ bricks, float *depth, uint32_t many, int steps) {
    int ray = blockIdx.x * 4 + threadIdx.y;
    depth[ray * 32 + threadIdx.x] = wander(bricks, many, ray, threadIdx.x, steps);
}
__global__ void __launch_bounds__(128) paint(const float *__restrict__ depth, float *out) {
    int ray = blockIdx.x * 4 + threadIdx.y;
    colour(depth[ray * 32 + threadIdx.x], out, ray, threadIdx.x);
}
static Step nebula(bool all) {
    int rays = 132 * 64, steps = 256;
    float *bricks = buffer<float>((size_t)512 * M), *out = buffer<float>((size_t)rays * 160 * 32), *depth = buffer<float>(rays * 32);
    std::vector<float> bands(160);
    for (int b = 0; b < 160; ++b) bands[b] = 0.9f + 5e-4f * b;
    CHECK(cudaMemcpyToSymbol(band, bands.data(), 640));
    return [=] {
        if (all)
            LAUNCH(render, rays / 4, dim3(32, 4), 0, bricks, out, 16u * M, steps);
        else {
            LAUNCH(go, rays / 4, dim3(32, 4), 0, bricks, depth, 16u * M, steps);
            LAUNCH(paint, rays / 4, dim3(32, 4), 0, depth, out);
        }
    };
}
CASE(nebula_ill, "light-of-a-nebula") { return nebula(true); }
CASE(nebula_cured, "light-of-a-nebula.cured") { return nebula(false); }

// occupancy-block-size: a warp reads where its record lies, then 256 bytes there: blocks of 32 (ill: 32 warps an SM wait for DRAM) or 256 (cured: 64 warps)
__global__ void sketch(const uint32_t *__restrict__ place, const uint32_t *__restrict__ words, uint32_t *least, uint32_t n) {
    uint32_t record = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (record >= n) return;
    const uint32_t *own = words + (size_t)place[record] * 64;
    uint32_t a = hashed(own[lane]), b = hashed(own[lane + 32]);
    uint32_t smallest = __reduce_min_sync(~0u, min(a, b));
    if (lane == 0) least[record] = smallest;
}
static Step sketches(int block) {
    uint32_t n = 4 * M;
    std::vector<uint32_t> where(n);
    for (uint32_t k = 0; k < n; ++k) where[k] = k * 2654435761u % n;
    uint32_t *place = copied(where), *words = buffer<uint32_t>((size_t)n * 64), *least = buffer<uint32_t>(n);
    return [=] { LAUNCH(sketch, n / (block / 32), block, 0, place, words, least, n); };
}
CASE(sketches_ill, "genome-sketches") { return sketches(32); }
CASE(sketches_cured, "genome-sketches.cured") { return sketches(256); }

// dependent-chain: series of 8192 terms by Horner's rule, a warp a scheduler: each FMA waits for the one before (ill: 4 cycles each), or 8 series of
// x to the 8th (cured)
template <int PARTS> __global__ void sum_series(const float *__restrict__ terms, float *y, int count) {
    __shared__ __align__(16) float own[8192];
    for (int k = threadIdx.x; k < count; k += blockDim.x) own[k] = terms[k];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int energy = 0; energy < 8; ++energy) {
        float x = 0.9f + 1e-6f * (i + 1000 * energy), power = 1, sum[PARTS] = {};
#pragma unroll
        for (int p = 0; p < PARTS; ++p) power *= x;
#pragma unroll 4
        for (int k = count - 8; k >= 0; k -= 8) {
            float4 low = *(const float4 *)(own + k), high = *(const float4 *)(own + k + 4);
            float term[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
            for (int p = 7; p >= 0; --p) sum[p % PARTS] = fmaf(sum[p % PARTS], power, term[p]);
        }
        float all = 0;
#pragma unroll
        for (int p = PARTS - 1; p >= 0; --p) all = fmaf(all, x, sum[p]);
        y[energy * (size_t)gridDim.x * blockDim.x + i] = all;
    }
}
static Step scattering(bool parts) {
    float *terms = buffer<float>(8192), *y = buffer<float>(132 * 128 * 8);
    return [=] {
        for (int angle = 0; angle < 4; ++angle)
            if (parts)
                LAUNCH(sum_series<8>, 132, 128, 0, terms, y, 8192);
            else
                LAUNCH(sum_series<1>, 132, 128, 0, terms, y, 8192);
    };
}
CASE(scattering_ill, "partial-waves") { return scattering(false); }
CASE(scattering_cured, "partial-waves.cured") { return scattering(true); }

// instruction-cache: 64 evolved formulas of 512 instructions each in a kernel; warps of an SM work on different ones (ill: 512 kB of instructions come from L2) or
// on the same (cured)
__host__ __device__ constexpr float constant_of(int formula, int k) {
    uint32_t h = (uint32_t)formula * 2654435761u + (uint32_t)k * 40503u + 17u;
    h ^= h >> 15, h *= 2246822519u, h ^= h >> 13;
    return 0.2f + 0.3f * (h % 1000003u) / 1000003.0f;
}
template <int FORMULA> __device__ __noinline__ float formula_of(float x) {
    float a = x, b = x + 1.0f, c = x + 2.0f, d = x + 3.0f;
#pragma unroll
    for (int k = 0; k < 512; k += 4) {
        a = fmaf(a, constant_of(FORMULA, k), b);
        b = fmaf(b, constant_of(FORMULA, k + 1), c);
        c = fmaf(c, constant_of(FORMULA, k + 2), d);
        d = fmaf(d, constant_of(FORMULA, k + 3), a);
        if (k % 64 == 60) a *= 0.01f, b *= 0.01f, c *= 0.01f, d *= 0.01f;
    }
    return a + b + c + d;
}
__device__ inline float chosen(int formula, float x) {
    switch (formula) {
#define ONE(k) case k: return formula_of<k>(x);
#define EIGHT_OF(k) ONE(k) ONE(k + 1) ONE(k + 2) ONE(k + 3) ONE(k + 4) ONE(k + 5) ONE(k + 6) ONE(k + 7)
        EIGHT_OF(0) EIGHT_OF(8) EIGHT_OF(16) EIGHT_OF(24) EIGHT_OF(32) EIGHT_OF(40) EIGHT_OF(48) EIGHT_OF(56)
    }
    return 0;
}
__global__ void fitness(const float *__restrict__ x, float *y, int n, bool mixed) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, warp = i / 32;
    float v = x[i], sum = 0;
#pragma unroll 1
    for (int round = 0; round < 8; ++round) {
        int which = (mixed ? (int)(hashed(warp) >> 3) + 11 * round : round + (int)((size_t)warp * 64 / (n / 32))) & 63;
        sum += chosen(which, v + 0.01f * round);
    }
    y[i] = sum;
}
static Step evolved(bool mixed) {
    int n = 4 * M;
    float *x = buffer<float>(n), *y = buffer<float>(n);
    return [=] { LAUNCH(fitness, n / 256, 256, 0, x, y, n, mixed); };
}
CASE(evolved_ill, "evolved-formulas") { return evolved(true); }
CASE(evolved_cured, "evolved-formulas.cured") { return evolved(false); }

// instruction-cache: a transform of 112 samples in registers, written out by a generator: 12544 FMA in a row (ill: 200 kB for 8 warps an SM), or a loop over
// the rows of a matrix in shared memory (cured)
template <int ROW> __device__ __forceinline__ void rows_from(const float (&v)[112], float *out, int n) {
    float sum[4] = {0, 0, 0, 0};
#pragma unroll
    for (int k = 0; k < 112; ++k) sum[k % 4] = fmaf(v[k], constant_of(ROW + 100, k), sum[k % 4]);
    *out = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    if constexpr (ROW + 1 < 112) rows_from<ROW + 1>(v, out + n, n);
}
__global__ void __launch_bounds__(128, 2) transform_all(const float *__restrict__ in, float *out, const float *, int n, int blocks) {
    int i = blockIdx.x * 128 + threadIdx.x;
#pragma unroll 1
    for (int block = 0; block < blocks; ++block) {
        float v[112];
#pragma unroll
        for (int k = 0; k < 112; ++k) v[k] = in[(size_t)(block * 112 + k) * n + i];
        rows_from<0>(v, out + (size_t)block * 112 * n + i, n);
    }
}
__global__ void __launch_bounds__(128, 2) transform_rows(const float *__restrict__ in, float *out, const float *__restrict__ matrix, int n, int blocks) {
    extern __shared__ __align__(16) float own[];
    for (int k = threadIdx.x; k < 112 * 112; k += 128) own[k] = matrix[k];
    __syncthreads();
    int i = blockIdx.x * 128 + threadIdx.x;
#pragma unroll 1
    for (int block = 0; block < blocks; ++block) {
        float v[112];
#pragma unroll
        for (int k = 0; k < 112; ++k) v[k] = in[(size_t)(block * 112 + k) * n + i];
#pragma unroll 1
        for (int row = 0; row < 112; ++row) {
            float sum[4] = {0, 0, 0, 0};
#pragma unroll
            for (int k = 0; k < 112; k += 4) {
                float4 m = *(const float4 *)(own + row * 112 + k);
                sum[0] = fmaf(v[k], m.x, sum[0]), sum[1] = fmaf(v[k + 1], m.y, sum[1]), sum[2] = fmaf(v[k + 2], m.z, sum[2]), sum[3] = fmaf(v[k + 3], m.w, sum[3]);
            }
            out[(size_t)(block * 112 + row) * n + i] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        }
    }
}
static Step subbands(bool all) {
    int n = 132 * 256, blocks = 24;
    size_t size = (size_t)n * 112 * blocks;
    float *in = buffer<float>(size), *out = buffer<float>(size), *matrix = buffer<float>(112 * 112, 0.2, 0.5);
    CHECK(cudaFuncSetAttribute(transform_rows, cudaFuncAttributeMaxDynamicSharedMemorySize, 112 * 112 * 4));
    return [=] {
        if (all)
            LAUNCH(transform_all, n / 128, 128, 0, in, out, matrix, n, blocks);
        else
            LAUNCH(transform_rows, n / 128, 128, 112 * 112 * 4, in, out, matrix, n, blocks);
    };
}
CASE(subbands_ill, "coded-sound") { return subbands(true); }
CASE(subbands_cured, "coded-sound.cured") { return subbands(false); }

// l2-capacity: words of DNA are counted in a table of 512 MB as they come (ill: each count fetches a sector of DRAM and writes it back) or bucket by bucket of
// 8 MB (cured: counts stay in L2); no two meet
__global__ void words_of(uint32_t *word, size_t n, uint32_t table, bool bucketed) {
    for EACH(i, n) {
        uint32_t r = hashed((uint32_t)i * 2654435761u + 5u), bucket = (uint32_t)(i * 64 / n);
        word[i] = bucketed ? bucket * (table / 64) + r % (table / 64) : r % table;
    }
}
__global__ void count_words(const uint32_t *__restrict__ word, uint32_t *count, size_t n) {
    for EACH(i, n) atomicAdd(&count[word[i]], 1u);
}
static Step dna(bool bucketed) {
    size_t n = 64 * M;
    uint32_t table = 128u * M, *word = buffer<uint32_t>(n), *count = buffer<uint32_t>(table);
    words_of<<<2112, 256>>>(word, n, table, bucketed);
    CHECK(cudaGetLastError());
    return [=] { LAUNCH(count_words, 1056, 512, 0, word, count, n); };
}
CASE(dna_ill, "words-of-dna") { return dna(false); }
CASE(dna_cured, "words-of-dna.cured") { return dna(true); }

// l2-capacity: derivatives along the depth of 9 planes of 16 MB, plane after plane (ill: a plane comes from DRAM nine times), or by threads that walk down and keep
// nine values (cured: once)
#define TAPS(g) fmaf(-0.05f, g(0) + g(8), fmaf(0.1f, g(1) + g(7), fmaf(-0.2f, g(2) + g(6), fmaf(0.8f, g(3) + g(5), -1.3f * g(4)))))
__global__ void deepen(const float *__restrict__ in, float *out, int area, int depth) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, z = blockIdx.y + 4;
#define AT(k) in[(size_t)(z + k - 4) * area + i]
    out[(size_t)z * area + i] = TAPS(AT);
}
__global__ void deepen_down(const float *__restrict__ in, float *out, int area, int depth) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float q[9];
#pragma unroll
    for (int k = 0; k < 8; ++k) q[k + 1] = in[(size_t)k * area + i];
#pragma unroll 9
    for (int z = 4; z < depth - 4; ++z) {
#pragma unroll
        for (int k = 0; k < 8; ++k) q[k] = q[k + 1];
        q[8] = in[(size_t)(z + 4) * area + i];
#define HAD(k) q[k]
        out[(size_t)z * area + i] = TAPS(HAD);
    }
}
static Step earth(bool down) {
    int area = 4 * M, depth = 80;
    float *in = buffer<float>((size_t)area * depth), *out = buffer<float>((size_t)area * depth);
    return [=] {
        if (down)
            LAUNCH(deepen_down, area / 256, 256, 0, in, out, area, depth);
        else
            LAUNCH(deepen, dim3(area / 256, depth - 8), 256, 0, in, out, area, depth);
    };
}
CASE(earth_ill, "waves-in-the-earth") { return earth(false); }
CASE(earth_cured, "waves-in-the-earth.cured") { return earth(true); }

// ---- healthy: few warps, each with eight loads of 16 bytes in flight: DRAM binds
__global__ void __launch_bounds__(128) mixdown(const float4 *__restrict__ in, float4 *out, size_t n) {
    for (size_t i = blockIdx.x * (size_t)1024 + threadIdx.x; i < n; i += (size_t)gridDim.x * 1024) {
        float4 v[8];
#pragma unroll
        for (int k = 0; k < 8; ++k) v[k] = __ldcs(in + i + k * 128);
#pragma unroll
        for (int k = 0; k < 8; ++k) __stcs(out + i + k * 128, make_float4(v[k].x * 0.7f, v[k].y * 0.7f, v[k].z * 0.7f, v[k].w * 0.7f));
    }
}
CASE(mix_healthy, "mixed-tracks") {
    size_t n = (size_t)96 * M;
    float4 *in = (float4 *)buffer<float>(4 * n), *out = (float4 *)buffer<float>(4 * n);
    return [=] { LAUNCH(mixdown, 132 * 4, 128, 0, in, out, n); };
}

// ---- healthy: atomic additions, one a block of 64 kB that it read: DRAM binds
__global__ void turnover(const float4 *__restrict__ price, const float4 *__restrict__ volume, float *total, size_t n) {
    float sum = 0;
#pragma unroll 4
    for (int k = 0; k < 8; ++k) {
        size_t i = blockIdx.x * (size_t)2048 + k * 256 + threadIdx.x;
        float4 p = price[i], v = volume[i];
        sum += p.x * v.x + p.y * v.y + p.z * v.z + p.w * v.w;
    }
#pragma unroll
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    __shared__ float part[8];
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int k = 1; k < 8; ++k) sum += part[k];
        atomicAdd(&total[blockIdx.x / 64], sum);
    }
}
CASE(turnover_healthy, "days-of-trading") {
    size_t n = (size_t)128 * M;
    float4 *price = (float4 *)buffer<float>(4 * n), *volume = (float4 *)buffer<float>(4 * n);
    float *total = buffer<float>(n / 2048 / 64);
    return [=] { LAUNCH(turnover, n / 2048, 256, 0, price, volume, total, n); };
}

// ---- healthy: FP64 by need: escape of points, all for 600 rounds, four a thread: the FP64 pipe binds
__global__ void escape(double *out, int n, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double x[4], y[4], cx[4], cy = -1.0 + 2.0 * i / n;
#pragma unroll
    for (int k = 0; k < 4; ++k) x[k] = 0, y[k] = 0, cx[k] = -0.4 + 1e-7 * (i % 1000) + 1e-4 * k;
    for (int r = 0; r < rounds; ++r)
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            double nx = fma(x[k], x[k], fma(-y[k], y[k], cx[k]));
            y[k] = fma(x[k] + x[k], y[k], cy) * 0.25, x[k] = nx * 0.25;
        }
#pragma unroll
    for (int k = 0; k < 4; ++k) out[k * (size_t)n + i] = x[k] * x[k] + y[k] * y[k];
}
CASE(escape_healthy, "deep-zoom") {
    int n = 132 * 2048 * 8;
    double *out = buffer<double>(4 * (size_t)n);
    return [=] { LAUNCH(escape, n / 256, 256, 0, out, n, 600); };
}

// ---- healthy: eight warps an SM, for 160 kB of shared memory a block, but 16 independent FMA each: the FMA pipe binds
__global__ void __launch_bounds__(256) respond(const float *__restrict__ kernels, float *out, int rounds) {
    extern __shared__ __align__(16) float table[];
    for (int k = threadIdx.x; k < 40000; k += 256) table[k] = kernels[k];
    __syncthreads();
    float a[16];
#pragma unroll
    for (int k = 0; k < 16; ++k) a[k] = k + threadIdx.x * 1e-3f;
    for (int r = 0; r < rounds; ++r) {
        float4 w = *(const float4 *)(table + r % 9999 * 4);
#pragma unroll
        for (int again = 0; again < 4; ++again)
#pragma unroll
            for (int k = 0; k < 16; ++k) a[k] = fmaf(a[k], k % 2 ? w.x : w.y, k % 4 < 2 ? w.z : w.w);
    }
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 16; ++k) sum += a[k];
    out[blockIdx.x * (size_t)256 + threadIdx.x] = sum;
}
CASE(respond_healthy, "antenna-response") {
    float *kernels = buffer<float>(40000, 0, 0.5), *out = buffer<float>(132 * 4 * 256);
    CHECK(cudaFuncSetAttribute(respond, cudaFuncAttributeMaxDynamicSharedMemorySize, 160000));
    return [=] { LAUNCH(respond, 132 * 4, 256, 160000, kernels, out, 4000); };
}

// ---- healthy: records of 512 bytes in an order at random, from a library of 16 MB: L2 binds
__global__ void look_up(const float4 *__restrict__ library, float4 *out, uint32_t records, int rounds) {
    uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
    for (int r = 0; r < rounds; ++r) {
        float4 v = __ldcg(library + (size_t)(hashed(warp * 977u + r) & (records - 1)) * 32 + lane);
        sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
    out[blockIdx.x * (size_t)blockDim.x + threadIdx.x] = sum;
}
CASE(look_healthy, "spectral-library") {
    uint32_t records = 32768;
    float4 *library = (float4 *)buffer<float>((size_t)records * 128), *out = (float4 *)buffer<float>((size_t)1056 * 256 * 4);
    return [=] { LAUNCH(look_up, 1056, 256, 0, library, out, records, 1024); };
}

int main(int argc, char **argv) { return run_cases(argc, argv); }
