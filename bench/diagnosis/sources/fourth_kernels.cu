// The fourth part's kernels: steps of programs of other fields, each with an illness in a kernel, or none. NAME.cured is the
// same work without it. Names of kernels are neutral, and some steps have healthy neighbours.
#include "harness.h"

#include <cuda_fp16.h>
#include <mma.h>

#define M (1 << 20)
#define EACH(i, n) (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < (n); i += (size_t)gridDim.x * blockDim.x)

// Healthy company: positions move by velocities, 16 bytes a thread; DRAM binds.
__global__ void drift(float4 *x, const float4 *__restrict__ v, float dt, size_t n) {
    for EACH(i, n) {
        float4 p = x[i], u = v[i];
        x[i] = make_float4(fmaf(u.x, dt, p.x), fmaf(u.y, dt, p.y), fmaf(u.z, dt, p.z), p.w);
    }
}

// uncoalesced-access: echoes of a radar, two numbers of 16 bits each, are weighted, and stored a range after the other: from each thread (ill), or from a
// tile (cured)
__global__ void weigh(const short2 *__restrict__ echoes, const float *__restrict__ window, short2 *out, int ranges, int pulses) {
    int r = blockIdx.x * 32 + threadIdx.x, p = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) {
        short2 e = echoes[(size_t)(p + k) * ranges + r];
        float w = window[p + k];
        out[(size_t)r * pulses + p + k] = make_short2(e.x * w, e.y * w);
    }
}
__global__ void weigh_tile(const short2 *__restrict__ echoes, const float *__restrict__ window, short2 *out, int ranges, int pulses) {
    __shared__ short2 tile[32][33];
    int r = blockIdx.x * 32, p = blockIdx.y * 32;
    for (int k = threadIdx.y; k < 32; k += 8) {
        short2 e = echoes[(size_t)(p + k) * ranges + r + threadIdx.x];
        float w = window[p + k];
        tile[k][threadIdx.x] = make_short2(e.x * w, e.y * w);
    }
    __syncthreads();
    for (int k = threadIdx.y; k < 32; k += 8) out[(size_t)(r + k) * pulses + p + threadIdx.x] = tile[threadIdx.x][k];
}
static Step echoes(bool each) {
    int ranges = 16384, pulses = 8192;
    short2 *in = (short2 *)buffer<int16_t>(2 * (size_t)ranges * pulses, -999, 999), *out = (short2 *)buffer<int16_t>(2 * (size_t)ranges * pulses);
    float *window = buffer<float>(pulses);
    return [=] {
        if (each)
            LAUNCH(weigh, dim3(ranges / 32, pulses / 32), dim3(32, 8), 0, in, window, out, ranges, pulses);
        else
            LAUNCH(weigh_tile, dim3(ranges / 32, pulses / 32), dim3(32, 8), 0, in, window, out, ranges, pulses);
    };
}
CASE(echoes_ill, "radar-echoes") { return echoes(true); }
CASE(echoes_cured, "radar-echoes.cured") { return echoes(false); }

// array-of-structures: a lattice of Boltzmann's with 9 populations a cell: a cell's together (ill) or a direction's (cured)
template <bool TOGETHER> __global__ void collide(const float *__restrict__ from, float *to, int nx, int ny) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    const int cx[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, cy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
    const float w[9] = {4.0f / 9, 1.0f / 9, 1.0f / 9, 1.0f / 9, 1.0f / 9, 1.0f / 36, 1.0f / 36, 1.0f / 36, 1.0f / 36};
    size_t cells = (size_t)nx * ny, own = (size_t)y * nx + x;
    float f[9], density = 0, ux = 0, uy = 0;
#pragma unroll
    for (int k = 0; k < 9; ++k) {
        int sx = (x - cx[k] + nx) & (nx - 1), sy = (y - cy[k] + ny) & (ny - 1);
        size_t source = (size_t)sy * nx + sx;
        f[k] = from[TOGETHER ? source * 9 + k : k * cells + source];
        density += f[k], ux += cx[k] * f[k], uy += cy[k] * f[k];
    }
    float each = 1.0f / (density + 1e-6f);
    ux *= each, uy *= each;
#pragma unroll
    for (int k = 0; k < 9; ++k) {
        float along = cx[k] * ux + cy[k] * uy;
        float rest = w[k] * density * (1.0f + 3.0f * along + 4.5f * along * along - 1.5f * (ux * ux + uy * uy));
        to[TOGETHER ? own * 9 + k : k * cells + own] = f[k] + 0.6f * (rest - f[k]);
    }
}
static Step lattice(bool together) {
    int nx = 4096, ny = 4096;
    float *a = buffer<float>(9 * (size_t)nx * ny), *b = buffer<float>(9 * (size_t)nx * ny);
    return [=] {
        if (together) {
            LAUNCH(collide<true>, dim3(nx / 128, ny), 128, 0, a, b, nx, ny);
            LAUNCH(collide<true>, dim3(nx / 128, ny), 128, 0, b, a, nx, ny);
        } else {
            LAUNCH(collide<false>, dim3(nx / 128, ny), 128, 0, a, b, nx, ny);
            LAUNCH(collide<false>, dim3(nx / 128, ny), 128, 0, b, a, nx, ny);
        }
    };
}
CASE(lattice_ill, "lattice") { return lattice(true); }
CASE(lattice_cured, "lattice.cured") { return lattice(false); }

// random-gather: forces of 20 neighbours on each of 8 million atoms, numbered at random (ill) or by cell (cured); 16 bytes each
__global__ void interact(const float4 *__restrict__ x, const int *__restrict__ list, float4 *f, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 own = x[i];
    float fx = 0, fy = 0, fz = 0;
#pragma unroll 4
    for (int k = 0; k < 20; ++k) {
        float4 other = x[list[k * (size_t)n + i]];
        float dx = own.x - other.x, dy = own.y - other.y, dz = own.z - other.z;
        float s = fmaxf(1.0f - (dx * dx + dy * dy + dz * dz), 0.0f);
        fx = fmaf(s, dx, fx), fy = fmaf(s, dy, fy), fz = fmaf(s, dz, fz);
    }
    f[i] = make_float4(fx, fy, fz, 0);
}
__global__ void enlist(int *list, int n, bool at_random) {
    for EACH(e, 20 * (size_t)n) {
        size_t i = e % n, k = e / n;
        list[e] = at_random ? (int)(hashed((uint32_t)e * 2654435761u + 17) % n) : (int)((i + n - 40 + k % 5 * 20 + hashed((uint32_t)e) % 20 + k / 5 * 8192) % n);
    }
}
static Step molecules(bool at_random) {
    int n = 8 * M;
    float4 *x = (float4 *)buffer<float>(4 * (size_t)n), *v = (float4 *)buffer<float>(4 * (size_t)n), *f = (float4 *)buffer<float>(4 * (size_t)n);
    int *list = buffer<int>(20 * (size_t)n);
    enlist<<<4096, 256>>>(list, n, at_random);
    CHECK(cudaGetLastError());
    return [=] {
        LAUNCH(interact, n / 128, 128, 0, x, list, f, n);
        LAUNCH(drift, 2112, 256, 0, v, f, 1e-3f, (size_t)n);
        LAUNCH(drift, 2112, 256, 0, x, v, 1e-3f, (size_t)n);
    };
}
CASE(molecules_ill, "molecules") { return molecules(true); }
CASE(molecules_cured, "molecules.cured") { return molecules(false); }

// narrow-access: bases of a sequencer whose quality is low are masked, one a thread (ill) or 16 (cured)
__global__ void stage2(const uint8_t *__restrict__ bases, const uint8_t *__restrict__ quality, uint8_t *out, size_t n, int least) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) out[i] = quality[i] < least ? 'N' : bases[i];
}
__device__ inline uint32_t masked(uint32_t bases, uint32_t quality, uint32_t least) {
    uint32_t low = __vcmpltu4(quality, least * 0x01010101u);
    return (low & 0x4e4e4e4eu) | (~low & bases);
}
__global__ void stage2_by16(const uint4 *__restrict__ bases, const uint4 *__restrict__ quality, uint4 *out, size_t n, int least) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint4 b = bases[i], q = quality[i];
    out[i] = make_uint4(masked(b.x, q.x, least), masked(b.y, q.y, least), masked(b.z, q.z, least), masked(b.w, q.w, least));
}
static Step bases(bool narrow) {
    size_t n = 768 * (size_t)M;
    uint8_t *in = buffer<uint8_t>(n, 65, 90), *quality = buffer<uint8_t>(n, 0, 42), *out = buffer<uint8_t>(n);
    return [=] {
        if (narrow)
            LAUNCH(stage2, n / 256, 256, 0, in, quality, out, n, 20);
        else
            LAUNCH(stage2_by16, n / 16 / 256, 256, 0, (const uint4 *)in, (const uint4 *)quality, (uint4 *)out, n / 16, 20);
    };
}
CASE(bases_ill, "read-quality") { return bases(true); }
CASE(bases_cured, "read-quality.cured") { return bases(false); }

// bank-conflicts: transforms of 1024 complex numbers, radix 4 of the same order in each stage, without (ill) or with (cured) padding
template <bool PADDED> __global__ void __launch_bounds__(256) spectra(const float2 *__restrict__ in, float2 *out, int rounds) {
    __shared__ float re[1024 + 32], im[1024 + 32];
    int t = threadIdx.x;
    auto at = [](int i) { return PADDED ? i + i / 32 : i; };
    const float2 *own = in + blockIdx.x * (size_t)1024;
    for (int k = 0; k < 4; ++k) {
        float2 v = own[t + k * 256];
        re[at(t + k * 256)] = v.x, im[at(t + k * 256)] = v.y;
    }
    float wx = 0.5f - t * 1e-4f, wy = 0.4f + t * 1e-4f;
    for (int round = 0; round < rounds; ++round)
#pragma unroll
        for (int stage = 0; stage < 5; ++stage) {
            float a[4], b[4];
            __syncthreads();
#pragma unroll
            for (int k = 0; k < 4; ++k) a[k] = re[at(t + k * 256)], b[k] = im[at(t + k * 256)];
            __syncthreads();
            float sx = a[0] + a[2], sy = b[0] + b[2], dx = a[0] - a[2], dy = b[0] - b[2];
            float ux = a[1] + a[3], uy = b[1] + b[3], vx = a[1] - a[3], vy = b[1] - b[3];
            float cx[4] = {sx + ux, dx + vy, sx - ux, dx - vy}, cy[4] = {sy + uy, dy - vx, sy - uy, dy + vx};
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                re[at(4 * t + k)] = cx[k] * wx - cy[k] * wy;
                im[at(4 * t + k)] = cx[k] * wy + cy[k] * wx;
            }
        }
    __syncthreads();
    for (int k = 0; k < 4; ++k) out[blockIdx.x * (size_t)1024 + t + k * 256] = make_float2(re[at(t + k * 256)], im[at(t + k * 256)]);
}
static Step transforms(bool padded) {
    int count = 16 * 1024;
    float2 *in = (float2 *)buffer<float>(2 * 1024 * (size_t)count), *out = (float2 *)buffer<float>(2 * 1024 * (size_t)count);
    return [=] {
        if (padded)
            LAUNCH(spectra<true>, count, 256, 0, in, out, 6);
        else
            LAUNCH(spectra<false>, count, 256, 0, in, out, 6);
    };
}
CASE(transforms_ill, "channeliser") { return transforms(false); }
CASE(transforms_cured, "channeliser.cured") { return transforms(true); }

// register-spills: rays through fog, 40 bands of light a ray, with 32 registers (ill) or what it needs (cured)
template <int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS) march(const float *__restrict__ fog, const float *__restrict__ starts, float *light, int n, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float band[40], position = starts[i];
#pragma unroll
    for (int b = 0; b < 40; ++b) band[b] = 1.0f;
    for (int s = 0; s < steps; ++s) {
        float density = fog[(int)(position * 1023.0f) & 1023];
        position = fmaf(position, 0.99f, 0.003f);
#pragma unroll
        for (int b = 0; b < 40; ++b) band[b] = fmaf(band[b], fmaf(density, -0.001f * (b + 1), 1.0f), 1e-4f * density);
    }
#pragma unroll
    for (int b = 0; b < 40; ++b) light[b * (size_t)n + i] = band[b];
}
static Step fog(bool few) {
    int n = 132 * 2048 * 6;
    float *density = buffer<float>(1024), *starts = buffer<float>(n), *light = buffer<float>(40 * (size_t)n);
    return [=] {
        if (few)
            LAUNCH((march<1024, 2>), n / 1024, 1024, 0, density, starts, light, n, 256);
        else
            LAUNCH((march<128, 6>), n / 128, 128, 0, density, starts, light, n, 256);
    };
}
CASE(fog_ill, "bands-of-light") { return fog(true); }
CASE(fog_cured, "bands-of-light.cured") { return fog(false); }

// local-array-indexing: the commonest of 10 labels in a window of 7 by 7; counts in an array (ill) or in 60 bits (cured)
template <bool ARRAY> __global__ void vote(const uint8_t *__restrict__ labels, uint8_t *out, int width, int pitch) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= width) return;
    const uint8_t *own = labels + (size_t)y * pitch + x;
    int best = 0, most = 0;
    if (ARRAY) {
        int counts[10] = {};
        for (int r = 0; r < 7; ++r)
            for (int c = 0; c < 7; ++c) ++counts[own[r * pitch + c]];
#pragma unroll 1
        for (int k = 0; k < 10; ++k)
            if (counts[k] > most) most = counts[k], best = k;
    } else {
        uint64_t counts = 0;
        for (int r = 0; r < 7; ++r)
            for (int c = 0; c < 7; ++c) counts += 1ull << (6 * own[r * pitch + c]);
        for (int k = 0; k < 10; ++k) {
            int count = counts >> (6 * k) & 63;
            if (count > most) most = count, best = k;
        }
    }
    out[(size_t)y * width + x] = best;
}
static Step votes(bool array) {
    int width = 4096, height = 4096, pitch = width + 64;
    uint8_t *labels = buffer<uint8_t>((size_t)pitch * (height + 8), 0, 10), *out = buffer<uint8_t>((size_t)width * height);
    return [=] {
        if (array)
            LAUNCH(vote<true>, dim3(width / 128, height), 128, 0, labels, out, width, pitch);
        else
            LAUNCH(vote<false>, dim3(width / 128, height), 128, 0, labels, out, width, pitch);
    };
}
CASE(votes_ill, "label-votes") { return votes(true); }
CASE(votes_cured, "label-votes.cured") { return votes(false); }

// divergence: points of six materials, each with a law of its own, mixed (ill) or kind by kind (cured); a healthy one after it
__global__ void respond(const uint8_t *kinds, float *strain, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float e = strain[i], s = 0;
    switch (kinds[i]) {
    case 0:
#pragma unroll 1
        for (int k = 0; k < 90; ++k) s = fmaf(e, 0.9f, s * 0.99f), e = fmaf(s, -0.01f, e);
        break;
    case 1:
#pragma unroll 1
        for (int k = 0; k < 80; ++k) s = fmaxf(fmaf(e, 1.7f, s), 0.2f), e = fminf(e * 0.98f, s);
        break;
    case 2:
#pragma unroll 1
        for (int k = 0; k < 70; ++k) s += e * e * 0.3f, e = fmaf(e, s * 1e-3f, 0.1f);
        break;
    case 3:
#pragma unroll 1
        for (int k = 0; k < 90; ++k) s = fabsf(e - s) * 0.7f, e = e + s * 0.05f - 0.02f;
        break;
    case 4:
#pragma unroll 1
        for (int k = 0; k < 60; ++k) s = fmaf(s, s * 0.01f, e), e = fmaf(e, 0.97f, s * 1e-4f), s = s - e;
        break;
    default:
#pragma unroll 1
        for (int k = 0; k < 80; ++k) s = s * 0.5f + e, e = e - fminf(s, 0.3f) * 0.04f;
    }
    strain[i] = e + 1e-3f * s;
}
static Step materials(bool mixed) {
    int n = 48 * M;
    std::vector<uint8_t> kinds(n);
    uint32_t seed = 5;
    for (int i = 0; i < n; ++i) {
        seed = seed * 1664525u + 1013904223u;
        kinds[i] = mixed ? (seed >> 16) % 6 : i / (n / 6);
    }
    uint8_t *at = copied(kinds);
    float *strain = buffer<float>(n);
    float4 *x = (float4 *)buffer<float>(128 * M), *v = (float4 *)buffer<float>(128 * M);
    return [=] {
        LAUNCH(respond, n / 256, 256, 0, at, strain, n);
        LAUNCH(drift, 2112, 256, 0, x, v, 1e-3f, (size_t)(32 * M));
    };
}
CASE(materials_ill, "materials") { return materials(true); }
CASE(materials_cured, "materials.cured") { return materials(false); }

// fp64-by-accident: the depth of water by Newton's steps, with constants of double (ill) or float (cured)
template <typename T> __global__ void level(const float *__restrict__ flow, float *depth, size_t n) {
    for EACH(i, n) {
        float q = flow[i], h = 1.0f;
#pragma unroll 1
        for (int k = 0; k < 6; ++k) {
            float over = h * h * h - q * (h + T(0.15));
            h = h - T(0.31) * over + T(1e-3) * h;
            h = h > T(0.05) ? h : T(0.05);
        }
        depth[i] = h;
    }
}
static Step rivers(bool doubles) {
    size_t n = 96 * (size_t)M;
    float *flow = buffer<float>(n), *depth = buffer<float>(n);
    return [=] {
        if (doubles)
            LAUNCH(level<double>, 4224, 256, 0, flow, depth, n);
        else
            LAUNCH(level<float>, 4224, 256, 0, flow, depth, n);
    };
}
CASE(rivers_ill, "river-depths") { return rivers(true); }
CASE(rivers_cured, "river-depths.cured") { return rivers(false); }

// special-functions: directions of an array of 128 antennas, by sine and cosine of each (ill) or a rotation (cured)
__constant__ float gains[128];
template <bool SPECIAL> __global__ void steer(const float *__restrict__ angles, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float phase = angles[i], re = 0, im = 0, c = 1, s = 0, cx = __cosf(phase), sx = __sinf(phase);
#pragma unroll 8
    for (int k = 0; k < 128; ++k) {
        if (SPECIAL) {
            c = __cosf(phase * k), s = __sinf(phase * k);
        } else if (k) {
            float t = c * cx - s * sx;
            s = c * sx + s * cx;
            c = t;
        }
        re = fmaf(gains[k], c, re), im = fmaf(gains[k], s, im);
    }
    out[i] = re * re + im * im;
}
static Step antennas(bool special) {
    int n = 16 * M;
    float *angles = buffer<float>(n), *out = buffer<float>(n);
    return [=] {
        if (special)
            LAUNCH(steer<true>, n / 256, 256, 0, angles, out, n);
        else
            LAUNCH(steer<false>, n / 256, 256, 0, angles, out, n);
    };
}
CASE(antennas_ill, "antennas") { return antennas(true); }
CASE(antennas_cured, "antennas.cured") { return antennas(false); }

// integer-division: pieces of words go to slots of a table, by remainders (ill) or the upper half of a product (cured)
template <bool DIVIDES> __global__ void encode(const uint32_t *__restrict__ words, uint32_t *out, size_t n, uint32_t slots) {
    for EACH(i, n) {
        uint32_t w = words[i], least = ~0u, sum = 0;
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            w = w * 2654435761u + k;
            uint32_t slot = DIVIDES ? w % (slots + k) : __umulhi(w, slots + k);
            least = min(least, slot), sum += slot;
        }
        out[i] = least ^ sum;
    }
}
static Step pieces(bool divides) {
    size_t n = 64 * (size_t)M;
    uint32_t *words = buffer<uint32_t>(n, 0, 4294967040.0), *out = buffer<uint32_t>(n);
    return [=] {
        if (divides)
            LAUNCH(encode<true>, 4224, 256, 0, words, out, n, 1000003u);
        else
            LAUNCH(encode<false>, 4224, 256, 0, words, out, n, 1000003u);
    };
}
CASE(pieces_ill, "word-pieces") { return pieces(true); }
CASE(pieces_cured, "word-pieces.cured") { return pieces(false); }

// contended-atomics: packets go to 8 queues; each takes its place there (ill) or a block takes places for all (cured)
__global__ void route(const uint4 *packets, uint32_t *places, int *heads, int n) {
    for EACH(i, n) {
        uint4 p = packets[i];
        int queue = (p.x ^ p.w) >> 13 & 7;
        places[i] = queue << 29 | (atomicAdd(&heads[queue], 1) & 0x1fffffff);
    }
}
__global__ void route_blocks(const uint4 *packets, uint32_t *places, int *heads, int n) {
    __shared__ int counts[8][8], begins[8][8];
    int w = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int begin = blockIdx.x * 256; begin < n; begin += gridDim.x * 256) {
        uint4 p = packets[begin + threadIdx.x];
        int queue = (p.x ^ p.w) >> 13 & 7, before = 0;
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            unsigned same = __ballot_sync(~0u, queue == k);
            if (queue == k) before = __popc(same & ((1u << lane) - 1));
            if (lane == k) counts[k][w] = __popc(same);
        }
        __syncthreads();
        if (threadIdx.x < 8) {
            int total = 0;
            for (int s = 0; s < 8; ++s) total += counts[threadIdx.x][s];
            int at = atomicAdd(&heads[threadIdx.x], total);
            for (int s = 0; s < 8; ++s) begins[threadIdx.x][s] = at, at += counts[threadIdx.x][s];
        }
        __syncthreads();
        places[begin + threadIdx.x] = queue << 29 | ((begins[queue][w] + before) & 0x1fffffff);
    }
}
static Step packets(bool contended) {
    int n = 4 * M;
    uint4 *in = (uint4 *)buffer<uint32_t>(4 * (size_t)n, 0, 4294967040.0);
    uint32_t *places = buffer<uint32_t>(n);
    int *heads = buffer<int>(8);
    float4 *x = (float4 *)buffer<float>(128 * M), *v = (float4 *)buffer<float>(128 * M);
    return [=] {
        LAUNCH(drift, 2112, 256, 0, x, v, 1e-3f, (size_t)(32 * M));
        if (contended)
            LAUNCH(route, 2112, 256, 0, in, places, heads, n);
        else
            LAUNCH(route_blocks, 1056, 256, 0, in, places, heads, n);
    };
}
CASE(packets_ill, "packets") { return packets(true); }
CASE(packets_cured, "packets.cured") { return packets(false); }

// barriers: sequences are aligned along their diagonals, a thread a column and a barrier a diagonal (ill), or a warp a
// sequence with 32 columns a thread (cured)
__global__ void __launch_bounds__(1024) score_a(const uint8_t *__restrict__ queries, const uint8_t *__restrict__ targets, int *best, int rows) {
    __shared__ int h[3][1025];
    int c = threadIdx.x, top = 0;
    uint8_t own = queries[blockIdx.x * 1024 + c];
    const uint8_t *target = targets + (size_t)blockIdx.x * rows;
    for (int k = 0; k < 3; ++k) {
        h[k][c + 1] = 0;
        if (c == 0) h[k][0] = 0;
    }
    __syncthreads();
    int *now = h[0], *one = h[1], *two = h[2];
    for (int d = 0; d < rows + 1023; ++d) {
        int row = d - c;
        if (row >= 0 && row < rows) {
            int v = max(0, max(two[c] + (target[row] == own ? 2 : -1), max(one[c], one[c + 1]) - 1));
            now[c + 1] = v;
            top = max(top, v);
        }
        int *oldest = two;
        two = one, one = now, now = oldest;
        __syncthreads();
    }
    atomicMax(&best[blockIdx.x], top);
}
__global__ void __launch_bounds__(128) score_b(const uint8_t *__restrict__ queries, const uint8_t *__restrict__ targets, int *best, int rows) {
    int lane = threadIdx.x % 32, sequence = (blockIdx.x * 128 + threadIdx.x) / 32, top = 0, edge = 0, last = 0;
    const uint8_t *target = targets + (size_t)sequence * rows;
    uint8_t own[32];
    int before[32];
#pragma unroll
    for (int k = 0; k < 32; ++k) own[k] = queries[sequence * 1024 + lane * 32 + k], before[k] = 0;
    for (int s = 0; s < rows + 31; ++s) {
        int in = __shfl_up_sync(~0u, last, 1), row = s - lane;
        if (lane == 0) in = 0;
        if (row >= 0 && row < rows) {
            int left = in, corner = edge;
            uint8_t letter = target[row];
#pragma unroll
            for (int k = 0; k < 32; ++k) {
                int up = before[k], v = max(0, max(corner + (letter == own[k] ? 2 : -1), max(left, up) - 1));
                corner = up, before[k] = v, left = v;
                top = max(top, v);
            }
            last = left;
        }
        edge = in;
    }
    atomicMax(&best[sequence], top);
}
static Step alignments(bool barriers) {
    int count = 132 * 2 * 8, rows = 600;
    uint8_t *queries = buffer<uint8_t>(count * (size_t)1024, 0, 4), *targets = buffer<uint8_t>(count * (size_t)rows, 0, 4);
    int *best = buffer<int>(count);
    return [=] {
        if (barriers)
            LAUNCH(score_a, count, 1024, 0, queries, targets, best, rows);
        else
            LAUNCH(score_b, count / 4, 128, 0, queries, targets, best, rows);
    };
}
CASE(alignments_ill, "alignments") { return alignments(true); }
CASE(alignments_cured, "alignments.cured") { return alignments(false); }

// tail-wave: 280 stations where 264 blocks fit (ill), or as much work in 264 (cured)
__global__ void __launch_bounds__(1024, 2) station(float4 *levels, int rounds) {
    int i = blockIdx.x * 1024 + threadIdx.x;
    float4 v = levels[i];
    for (int r = 0; r < rounds; ++r) {
        v.x = fmaf(v.x, 0.91f, 0.02f), v.y = fmaf(v.y, 0.92f, 0.03f), v.z = fmaf(v.z, 0.93f, 0.04f), v.w = fmaf(v.w, 0.94f, 0.05f);
    }
    levels[i] = v;
}
CASE(stations_ill, "stations") {
    float4 *levels = (float4 *)buffer<float>(280 * 1024 * 4);
    return [=] { LAUNCH(station, 280, 1024, 0, levels, 30000); };
}
CASE(stations_cured, "stations.cured") {
    float4 *levels = (float4 *)buffer<float>(280 * 1024 * 4);
    return [=] { LAUNCH(station, 264, 1024, 0, levels, 31818); };
}

// occupancy-shared-memory: 900 trees of a forest for rows of 400 columns; all columns are kept in shared memory (ill) or the
// 24 that the trees ask for (cured)
__global__ void __launch_bounds__(128) predict(const float *__restrict__ rows, const float2 *__restrict__ nodes, float *out, int n, int trees, int kept) {
    extern __shared__ float columns[];
    int i = blockIdx.x * 128 + threadIdx.x;
    for (int c = 0; c < kept; ++c) columns[c * 128 + threadIdx.x] = rows[c * (size_t)n + i];
    __syncthreads();
    float sum = 0;
#pragma unroll 1
    for (int t = 0; t < trees; ++t) {
        int at = 1;
        float2 node;
#pragma unroll 1
        for (int depth = 0; depth < 6; ++depth) {
            node = nodes[t * 64 + at];
            at = 2 * at + (columns[__float_as_int(node.x) * 128 + threadIdx.x] > node.y);
        }
        sum += node.y * (at & 1);
    }
    out[i] = sum;
}
__global__ void grow(float2 *nodes, int n) {
    for EACH(i, n) nodes[i] = make_float2(__int_as_float(hashed((uint32_t)i) % 24), 0.05f + hashed((uint32_t)i + 77) * 2e-10f);
}
static Step forest(int kept) {
    int n = 132 * 128 * 8, trees = 900;
    float *rows = buffer<float>(400 * (size_t)n), *out = buffer<float>(n);
    float2 *nodes = (float2 *)buffer<float>(2 * trees * 64);
    grow<<<256, 256>>>(nodes, trees * 64);
    CHECK(cudaGetLastError());
    CHECK(cudaFuncSetAttribute(predict, cudaFuncAttributeMaxDynamicSharedMemorySize, 400 * 512));
    return [=] { LAUNCH(predict, n / 128, 128, kept * 512, rows, nodes, out, n, trees, kept); };
}
CASE(forest_ill, "forest") { return forest(400); }
CASE(forest_cured, "forest.cured") { return forest(24); }

// dependent-chain: a fluid's state by polynomials of degree 48, by Horner's rule (ill) or in eight parts (cured); few warps
__constant__ float terms[64];
template <int PARTS> __global__ void relax(float *state, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = state[i];
#pragma unroll 1
    for (int r = 0; r < rounds; ++r) {
        float power = x;
#pragma unroll
        for (int p = 1; p < PARTS; p *= 2) power *= power;
        float sums[PARTS];
#pragma unroll
        for (int p = 0; p < PARTS; ++p) sums[p] = terms[48 + p];
#pragma unroll
        for (int k = 48 / PARTS - 1; k >= 0; --k)
#pragma unroll
            for (int p = 0; p < PARTS; ++p) sums[p] = fmaf(sums[p], power, terms[k * PARTS + p]);
#pragma unroll
        for (int half = PARTS / 2; half; half /= 2)
#pragma unroll
            for (int p = 0; p < half; ++p) sums[p] = fmaf(sums[p + half], x, sums[p]);
        x = fmaf(sums[0], 1e-3f, 0.5f);
    }
    state[i] = x;
}
static Step fluid(bool horner) {
    float *state = buffer<float>(132 * 128);
    return [=] {
        if (horner)
            LAUNCH(relax<1>, 132, 128, 0, state, 12000);
        else
            LAUNCH(relax<8>, 132, 128, 0, state, 12000);
    };
}
CASE(fluid_ill, "state-of-fluid") { return fluid(true); }
CASE(fluid_cured, "state-of-fluid.cured") { return fluid(false); }

// l2-capacity: 32 groups of 4 users are compared with 2 million articles: group by group (ill) or article by article (cured)
__global__ void match(const float *__restrict__ articles, const float *__restrict__ users, float *best, int n, int groups, bool by_article) {
    __shared__ float own[4][32];
    int tiles = n / 256, group = by_article ? blockIdx.x % groups : blockIdx.x / tiles, tile = by_article ? blockIdx.x / groups : blockIdx.x % tiles;
    if (threadIdx.x < 128) own[threadIdx.x / 32][threadIdx.x % 32] = users[group * 128 + threadIdx.x];
    __syncthreads();
    int at = tile * 256 + threadIdx.x;
    float sums[4] = {};
#pragma unroll
    for (int d = 0; d < 32; ++d) {
        float v = articles[d * (size_t)n + at];
#pragma unroll
        for (int u = 0; u < 4; ++u) sums[u] = fmaf(v, own[u][d], sums[u]);
    }
    float most = fmaxf(fmaxf(sums[0], sums[1]), fmaxf(sums[2], sums[3]));
    for (int far = 16; far; far /= 2) most = fmaxf(most, __shfl_down_sync(~0u, most, far));
    if (threadIdx.x % 32 == 0) best[(size_t)group * (n / 32) + at / 32] = most;
}
static Step articles(bool by_article) {
    int n = 2 * M, groups = 32;
    float *all = buffer<float>(32 * (size_t)n), *users = buffer<float>(groups * 128), *best = buffer<float>((size_t)groups * (n / 32));
    return [=] { LAUNCH(match, n / 256 * groups, 256, 0, all, users, best, n, groups, by_article); };
}
CASE(articles_ill, "articles") { return articles(false); }
CASE(articles_cured, "articles.cured") { return articles(true); }

// tensor-cores-unused: features in half precision are mixed by FP32 units (ill) or tensor cores (cured), tiles of 64 by 64
__global__ void __launch_bounds__(256) mix_a(const half *__restrict__ a, const half *__restrict__ b, float *c, int n, int depth) {
    __shared__ float left[16][65], right[16][64];
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16, row = blockIdx.y * 64, column = blockIdx.x * 64;
    float sums[4][4] = {};
    for (int k = 0; k < depth; k += 16) {
        for (int e = threadIdx.x; e < 1024; e += 256) {
            left[e % 16][e / 16] = __half2float(a[(size_t)(row + e / 16) * depth + k + e % 16]);
            right[e / 64][e % 64] = __half2float(b[(size_t)(k + e / 64) * n + column + e % 64]);
        }
        __syncthreads();
#pragma unroll
        for (int d = 0; d < 16; ++d) {
            float u[4], v[4];
#pragma unroll
            for (int e = 0; e < 4; ++e) u[e] = left[d][ty * 4 + e], v[e] = right[d][tx + e * 16];
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) sums[i][j] = fmaf(u[i], v[j], sums[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) c[(size_t)(row + ty * 4 + i) * n + column + tx + j * 16] = sums[i][j];
}
__global__ void __launch_bounds__(256) mix_b(const half *__restrict__ a, const half *__restrict__ b, float *c, int n, int depth) {
    using namespace nvcuda;
    __shared__ __align__(32) half left[64 * 48], right[32 * 80];
    int warp = threadIdx.x / 32, row = blockIdx.y * 64, column = blockIdx.x * 64, r = warp / 2 * 16, s = warp % 2 * 32;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[2];
    wmma::fill_fragment(sums[0], 0.0f);
    wmma::fill_fragment(sums[1], 0.0f);
    for (int k = 0; k < depth; k += 32) {
        int e = threadIdx.x * 8;
        *(uint4 *)&left[e / 32 * 48 + e % 32] = *(const uint4 *)&a[(size_t)(row + e / 32) * depth + k + e % 32];
        *(uint4 *)&right[e / 64 * 80 + e % 64] = *(const uint4 *)&b[(size_t)(k + e / 64) * n + column + e % 64];
        __syncthreads();
#pragma unroll
        for (int d = 0; d < 32; d += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> u;
            wmma::load_matrix_sync(u, &left[r * 48 + d], 48);
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> v;
                wmma::load_matrix_sync(v, &right[d * 80 + s + j * 16], 80);
                wmma::mma_sync(sums[j], u, v, sums[j]);
            }
        }
        __syncthreads();
    }
    for (int j = 0; j < 2; ++j) wmma::store_matrix_sync(&c[(size_t)(row + r) * n + column + s + j * 16], sums[j], n, wmma::mem_row_major);
}
__global__ void halves(half *data, size_t n) {
    for EACH(i, n) data[i] = __float2half((hashed((uint32_t)i) % 1000) * 1e-3f);
}
static Step features(bool tensor_cores) {
    int rows = 4096, n = 4096, depth = 1024;
    half *a = (half *)buffer<uint16_t>((size_t)rows * depth), *b = (half *)buffer<uint16_t>((size_t)depth * n);
    halves<<<1024, 256>>>(a, (size_t)rows * depth);
    halves<<<1024, 256>>>(b, (size_t)depth * n);
    CHECK(cudaGetLastError());
    float *c = buffer<float>((size_t)rows * n);
    return [=] {
        if (tensor_cores)
            LAUNCH(mix_b, dim3(n / 64, rows / 64), 256, 0, a, b, c, n, depth);
        else
            LAUNCH(mix_a, dim3(n / 64, rows / 64), 256, 0, a, b, c, n, depth);
    };
}
CASE(features_ill, "speech-features") { return features(false); }
CASE(features_cured, "speech-features.cured") { return features(true); }

// unequal-blocks: collisions in cells, of which a few are crowded: a block a cell (ill) or a block 256 of its atoms (cured)
__global__ void meet(const int4 *parts, const float2 *__restrict__ atoms, float *out) {
    __shared__ float2 tile[256];
    int4 part = parts[blockIdx.x];  // the cell's begin and atoms; the first and the number of those of this block
    for (int first = part.z; first < part.z + part.w; first += 256) {
        float2 own = atoms[part.x + first + threadIdx.x];
        float sum = 0;
        for (int begin = 0; begin < part.y; begin += 256) {
            __syncthreads();
            tile[threadIdx.x] = atoms[part.x + begin + threadIdx.x];
            __syncthreads();
#pragma unroll 8
            for (int j = 0; j < 256; ++j) {
                float dx = tile[j].x - own.x, dy = tile[j].y - own.y;
                sum += fmaxf(0.1f - (dx * dx + dy * dy), 0.0f);
            }
        }
        out[part.x + first + threadIdx.x] = sum;
    }
}
static Step crowds(bool split) {
    std::vector<int4> parts;
    int atoms = 0;
    for (int cell = 0; cell < 6600; ++cell) {
        int count = cell % 550 == 400 ? 4096 : 512, each = split ? 256 : count;
        for (int first = 0; first < count; first += each) parts.push_back({atoms, count, first, each});
        atoms += count;
    }
    int blocks = parts.size();
    int4 *at = copied(parts);
    float2 *positions = (float2 *)buffer<float>(2 * (size_t)atoms);
    float *out = buffer<float>(atoms);
    return [=] { LAUNCH(meet, blocks, 256, 0, at, positions, out); };
}
CASE(crowds_ill, "crowded-cells") { return crowds(false); }
CASE(crowds_cured, "crowded-cells.cured") { return crowds(true); }

// too-few-blocks: the weight of each of 20 lists of candidates, a block (ill) or 64 blocks (cured) a list; beside a healthy one
__global__ void __launch_bounds__(1024) sum_up(const float4 *__restrict__ scores, float *sums, int each) {
    int per = each / gridDim.x;
    const float4 *own = scores + blockIdx.y * (size_t)each + blockIdx.x * (size_t)per;
    float sum = 0;
#pragma unroll 2
    for (int i = threadIdx.x; i < per; i += 1024) {
        float4 v = own[i];
        sum += __expf(v.x) + __expf(v.y) + __expf(v.z) + __expf(v.w);
    }
    for (int far = 16; far; far /= 2) sum += __shfl_down_sync(~0u, sum, far);
    if (threadIdx.x % 32 == 0) atomicAdd(&sums[blockIdx.y], sum);
}
static Step candidates(int blocks) {
    int each = 4 * M;
    float4 *scores = (float4 *)buffer<float>(20 * (size_t)each * 4);
    float *sums = buffer<float>(20);
    float4 *x = (float4 *)buffer<float>(64 * M), *v = (float4 *)buffer<float>(64 * M);
    return [=] {
        LAUNCH(drift, 2112, 256, 0, x, v, 1e-3f, (size_t)(16 * M));
        LAUNCH(sum_up, dim3(blocks, 20), 1024, 0, scores, sums, each);
    };
}
CASE(candidates_ill, "candidates") { return candidates(1); }
CASE(candidates_cured, "candidates.cured") { return candidates(64); }

// instruction-cache: 9000 reactions of a mechanism written out one after the other (ill) or a loop over their rates (cured)
__constant__ float rates[1500];
template <int UNROLLED> __global__ void __launch_bounds__(128) react(float *species, int n, int rounds) {
    int i = blockIdx.x * 128 + threadIdx.x;
    float x[6];
    for (int k = 0; k < 6; ++k) x[k] = species[k * (size_t)n + i];
#pragma unroll 1
    for (int round = 0; round < rounds; ++round)
#pragma unroll UNROLLED
        for (int r = 0; r < 1500; ++r) {
            float rate = rates[r];
#pragma unroll
            for (int k = 0; k < 6; ++k) x[k] = fmaf(x[(k + 1) % 6], rate, x[k] * 0.5f);
        }
    for (int k = 0; k < 6; ++k) species[k * (size_t)n + i] = x[k];
}
static Step reactions(bool written_out) {
    int n = 132 * 128 * 16;
    float *species = buffer<float>(6 * (size_t)n);
    return [=] {
        if (written_out)
            LAUNCH(react<1500>, n / 128, 128, 0, species, n, 6);
        else
            LAUNCH(react<10>, n / 128, 128, 0, species, n, 6);
    };
}
CASE(reactions_ill, "reactions") { return reactions(true); }
CASE(reactions_cured, "reactions.cured") { return reactions(false); }

// healthy: traces are added, 12 loads of 16 bytes a thread, and 16 warps an SM: few, but DRAM binds
__global__ void __launch_bounds__(128) stack(const float4 *__restrict__ traces, float4 *out, int n) {
    extern __shared__ float4 kept[];
    for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128) {
        float4 v[12], sum = {};
#pragma unroll
        for (int k = 0; k < 12; ++k) v[k] = __ldcs(&traces[k * (size_t)n + i]);
#pragma unroll
        for (int k = 0; k < 12; ++k) sum.x += v[k].x, sum.y += v[k].y, sum.z += v[k].z, sum.w += v[k].w;
        kept[threadIdx.x] = sum;
        __stcs(&out[i], kept[threadIdx.x]);
    }
}
CASE(stack_healthy, "stacked-traces") {
    int n = 4 * M;
    float4 *traces = (float4 *)buffer<float>(48 * (size_t)n), *out = (float4 *)buffer<float>(4 * (size_t)n);
    CHECK(cudaFuncSetAttribute(stack, cudaFuncAttributeMaxDynamicSharedMemorySize, 56 * 1024));
    return [=] { LAUNCH(stack, 132 * 4, 128, 56 * 1024, traces, out, n); };
}

// healthy: events are counted by their energy, by atomics in shared memory, one each 16 bytes, and 64 a block at its end
__global__ void count_up(const uint4 *__restrict__ events, int *counts, size_t n) {
    __shared__ int own[8][64];
    for (int e = threadIdx.x; e < 512; e += 256) own[e / 64][e % 64] = 0;
    __syncthreads();
    size_t far = (size_t)gridDim.x * 256, i = blockIdx.x * (size_t)256 + threadIdx.x;
    for (; i + 3 * far < n; i += 4 * far) {
        uint4 v[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) v[k] = events[i + k * far];
#pragma unroll
        for (int k = 0; k < 4; ++k) atomicAdd(&own[threadIdx.x / 32][(v[k].x + v[k].y + v[k].z + v[k].w) >> 26], 1);
    }
    __syncthreads();
    if (threadIdx.x < 64) {
        int sum = 0;
        for (int w = 0; w < 8; ++w) sum += own[w][threadIdx.x];
        atomicAdd(&counts[threadIdx.x], sum);
    }
}
CASE(events_healthy, "events-by-energy") {
    size_t n = 1056 * (size_t)256 * 4 * 48;
    uint4 *events = (uint4 *)buffer<uint32_t>(4 * n, 0, 4294967040.0);
    int *counts = buffer<int>(64);
    return [=] { LAUNCH(count_up, 1056, 256, 0, events, counts, n); };
}

// healthy: potentials between charges of a crystal, numbers of 8 bytes throughout; FP64 binds, by need
__global__ void __launch_bounds__(128) lattice_sum(const double *__restrict__ charges, double *out, int cell) {
    __shared__ double tile[128];
    double own[4], sums[4] = {};
    for (int k = 0; k < 4; ++k) own[k] = charges[(blockIdx.x * 4 + k) * (size_t)128 + threadIdx.x];
    for (int c = 0; c < cell; ++c) {
        __syncthreads();
        tile[threadIdx.x] = charges[(c * 37 + blockIdx.x) % (gridDim.x * 4) * (size_t)128 + threadIdx.x];
        __syncthreads();
#pragma unroll 4
        for (int j = 0; j < 128; ++j) {
            double other = tile[j];
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                double d = own[k] - other, q = fma(d, d, 0.01);
                sums[k] = fma(q, fma(q, fma(q, -0.1, 0.5), -1.0), sums[k]);
            }
        }
    }
    for (int k = 0; k < 4; ++k) out[(blockIdx.x * 4 + k) * (size_t)128 + threadIdx.x] = sums[k];
}
CASE(crystal_healthy, "crystal") {
    int blocks = 132 * 8 * 4;
    double *charges = buffer<double>(blocks * (size_t)512), *out = buffer<double>(blocks * (size_t)512);
    return [=] { LAUNCH(lattice_sum, blocks, 128, 0, charges, out, 12); };
}

// healthy: sound in a room, points of a plane a thread through all planes, walls by a branch; DRAM binds
__global__ void __launch_bounds__(256) sound(const float4 *__restrict__ now, float4 *next, int nx, int ny, int nz) {
    int x = blockIdx.x * 64 + threadIdx.x % 64, y = blockIdx.y * 4 + threadIdx.x / 64, z0 = blockIdx.z * (nz / gridDim.z);
    size_t plane = (size_t)nx * ny, at = z0 * plane + (size_t)y * nx + x;
    float4 none = {}, below = z0 ? now[at - plane] : none, own = now[at];
    for (int z = z0; z < z0 + nz / (int)gridDim.z; ++z, at += plane) {
        float4 above = z + 1 < nz ? now[at + plane] : none, up = y ? now[at - nx] : none, down = y + 1 < ny ? now[at + nx] : none;
        float left = x ? ((const float *)&now[at])[-1] : 0, right = x + 1 < nx ? ((const float *)&now[at])[4] : 0;
        float4 old = next[at];
        old.x = fmaf(0.1f, left + own.y + up.x + down.x + below.x + above.x, fmaf(1.4f, own.x, -old.x));
        old.y = fmaf(0.1f, own.x + own.z + up.y + down.y + below.y + above.y, fmaf(1.4f, own.y, -old.y));
        old.z = fmaf(0.1f, own.y + own.w + up.z + down.z + below.z + above.z, fmaf(1.4f, own.z, -old.z));
        old.w = fmaf(0.1f, own.z + right + up.w + down.w + below.w + above.w, fmaf(1.4f, own.w, -old.w));
        next[at] = old;
        below = own, own = above;
    }
}
CASE(room_healthy, "sound-in-a-room") {
    int nx = 256, ny = 1024, nz = 192;
    float4 *a = (float4 *)buffer<float>(4 * (size_t)nx * ny * nz), *b = (float4 *)buffer<float>(4 * (size_t)nx * ny * nz);
    return [=] {
        LAUNCH(sound, dim3(nx / 64, ny / 4, 4), 256, 0, a, b, nx, ny, nz);
        LAUNCH(sound, dim3(nx / 64, ny / 4, 4), 256, 0, b, a, nx, ny, nz);
    };
}

int main(int argc, char **argv) { return run_cases(argc, argv); }
