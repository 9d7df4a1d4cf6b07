// Ordinary kernels, as courses, labs and first versions of research code have them.
#include "harness.h"
#include <algorithm>
#include <cmath>

// ---------------------------------------------------------------------------------------------------------------------
// Lab 2: matrix transpose. The version with a tile in shared memory; the lab times NUM_REPS calls after a copy kernel for reference.
const int TILE_DIM = 32;
const int BLOCK_ROWS = 8;
const int NUM_REPS = 10;

__global__ void copy(float *odata, const float *idata) {
    int x = blockIdx.x * TILE_DIM + threadIdx.x;
    int y = blockIdx.y * TILE_DIM + threadIdx.y;
    int width = gridDim.x * TILE_DIM;

    for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
        odata[(y + j) * width + x] = idata[(y + j) * width + x];
}

__global__ void transposeCoalesced(float *odata, const float *idata) {
    __shared__ float tile[TILE_DIM][TILE_DIM];

    int x = blockIdx.x * TILE_DIM + threadIdx.x;
    int y = blockIdx.y * TILE_DIM + threadIdx.y;
    int width = gridDim.x * TILE_DIM;

    for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
        tile[threadIdx.y + j][threadIdx.x] = idata[(y + j) * width + x];

    __syncthreads();

    x = blockIdx.y * TILE_DIM + threadIdx.x;  // transpose block offset
    y = blockIdx.x * TILE_DIM + threadIdx.y;

    for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
        odata[(y + j) * width + x] = tile[threadIdx.x][threadIdx.y + j];
}

CASE(transpose, "transpose") {
    const int nx = 4096, ny = 4096;
    float *d_idata = buffer<float>((size_t)nx * ny);
    float *d_cdata = buffer<float>((size_t)nx * ny);
    float *d_tdata = buffer<float>((size_t)nx * ny);
    return [=] {
        dim3 dimGrid(nx / TILE_DIM, ny / TILE_DIM, 1);
        dim3 dimBlock(TILE_DIM, BLOCK_ROWS, 1);
        for (int i = 0; i < NUM_REPS; i++) LAUNCH(copy, dimGrid, dimBlock, 0, d_cdata, d_idata);
        for (int i = 0; i < NUM_REPS; i++) LAUNCH(transposeCoalesced, dimGrid, dimBlock, 0, d_tdata, d_idata);
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// Lab 3: parallel reduction, sequential addressing; the kernel is called until one value is left.
__global__ void reduce(const float *g_idata, float *g_odata, unsigned int n) {
    extern __shared__ float sdata[];

    // each thread loads one element from global to shared mem
    unsigned int tid = threadIdx.x;
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    sdata[tid] = (i < n) ? g_idata[i] : 0;
    __syncthreads();

    // do reduction in shared mem
    for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) {
            sdata[tid] += sdata[tid + s];
        }
        __syncthreads();
    }

    // write result for this block to global mem
    if (tid == 0) g_odata[blockIdx.x] = sdata[0];
}

CASE(reduction, "reduction") {
    const unsigned int n = 1 << 26, threads = 256;
    float *d_in = buffer<float>(n);
    float *d_a = buffer<float>(n / threads), *d_b = buffer<float>(n / threads);
    return [=] {
        for (int rep = 0; rep < 4; rep++) {
            const float *src = d_in;
            float *dst = d_a;
            unsigned int left = n;
            while (left > 1) {
                unsigned int blocks = (left + threads - 1) / threads;
                LAUNCH(reduce, blocks, threads, threads * sizeof(float), src, dst, left);
                src = dst;
                dst = dst == d_a ? d_b : d_a;
                left = blocks;
            }
        }
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// Homework 1: tiled matrix multiplication with boundary checks.
#define TILE_WIDTH 16

__global__ void matrixMultiplyShared(const float *A, const float *B, float *C, int numARows, int numAColumns, int numBColumns) {
    __shared__ float ds_A[TILE_WIDTH][TILE_WIDTH];
    __shared__ float ds_B[TILE_WIDTH][TILE_WIDTH];

    int bx = blockIdx.x, by = blockIdx.y;
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = by * TILE_WIDTH + ty;
    int col = bx * TILE_WIDTH + tx;
    float pvalue = 0;

    for (int m = 0; m < (numAColumns - 1) / TILE_WIDTH + 1; ++m) {
        if (row < numARows && m * TILE_WIDTH + tx < numAColumns)
            ds_A[ty][tx] = A[row * numAColumns + m * TILE_WIDTH + tx];
        else
            ds_A[ty][tx] = 0;
        if (m * TILE_WIDTH + ty < numAColumns && col < numBColumns)
            ds_B[ty][tx] = B[(m * TILE_WIDTH + ty) * numBColumns + col];
        else
            ds_B[ty][tx] = 0;
        __syncthreads();
        for (int k = 0; k < TILE_WIDTH; ++k) pvalue += ds_A[ty][k] * ds_B[k][tx];
        __syncthreads();
    }
    if (row < numARows && col < numBColumns) C[row * numBColumns + col] = pvalue;
}

CASE(matmul, "matmul-tiled") {
    const int m = 2000, k = 1800, n = 2200;
    float *A = buffer<float>((size_t)m * k, -1, 1), *B = buffer<float>((size_t)k * n, -1, 1), *C = buffer<float>((size_t)m * n);
    return [=] {
        dim3 block(TILE_WIDTH, TILE_WIDTH);
        dim3 grid((n - 1) / TILE_WIDTH + 1, (m - 1) / TILE_WIDTH + 1);
        LAUNCH(matrixMultiplyShared, grid, block, 0, A, B, C, m, k, n);
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// Homework 3: histogram of the letters of a text, privatized in shared memory, saturated at 127 by a second kernel as the exercise asks.
#define NUM_BINS 128

__global__ void histogram(const char *input, unsigned int *bins, unsigned int num_elements) {
    __shared__ unsigned int histo_s[NUM_BINS];
    for (int b = threadIdx.x; b < NUM_BINS; b += blockDim.x) histo_s[b] = 0;
    __syncthreads();

    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int stride = blockDim.x * gridDim.x;
    while (i < num_elements) {
        int c = input[i];
        if (c >= 0 && c < NUM_BINS) atomicAdd(&histo_s[c], 1);
        i += stride;
    }
    __syncthreads();

    for (int b = threadIdx.x; b < NUM_BINS; b += blockDim.x) atomicAdd(&bins[b], histo_s[b]);
}

__global__ void saturate(unsigned int *bins, unsigned int num_bins) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < num_bins && bins[i] > 127) bins[i] = 127;
}

CASE(letters, "histogram") {
    // a text: words of the usual letters (the commonest letter is the blank, then e, t, a, o ...), 2 MB over and over
    const std::string usual = "                  eeeeeeeeeeettttttttaaaaaaaooooooiiiiiinnnnnnsssssshhhhhrrrrrddddllllcccuuummwwffggyyppbbvk.,\n";
    const size_t piece = 2 << 20, n = 256 << 20;
    std::vector<char> text(n);
    uint32_t seed = 12345;
    for (size_t i = 0; i < piece; ++i) {
        seed = seed * 1664525 + 1013904223;
        text[i] = usual[(seed >> 8) % usual.size()];
    }
    for (size_t at = piece; at < n; at += piece) memcpy(&text[at], &text[0], piece);
    char *input = copied(text);
    unsigned int *bins = buffer<unsigned int>(NUM_BINS);
    return [=] {
        CHECK(cudaMemsetAsync(bins, 0, NUM_BINS * sizeof(unsigned int)));
        LAUNCH(histogram, 1024, 256, 0, input, bins, (unsigned int)n);
        LAUNCH(saturate, 1, NUM_BINS, 0, bins, NUM_BINS);
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// Workshop: n-body, the CPU code moved to the GPU: a thread a body.
#define SOFTENING 1e-9f

typedef struct {
    float x, y, z, vx, vy, vz;
} Body;

__global__ void bodyForce(Body *p, float dt, int n) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n) {
        float Fx = 0.0f;
        float Fy = 0.0f;
        float Fz = 0.0f;

        for (int j = 0; j < n; j++) {
            float dx = p[j].x - p[i].x;
            float dy = p[j].y - p[i].y;
            float dz = p[j].z - p[i].z;
            float distSqr = dx * dx + dy * dy + dz * dz + SOFTENING;
            float invDist = 1.0f / sqrtf(distSqr);
            float invDist3 = invDist * invDist * invDist;

            Fx += dx * invDist3;
            Fy += dy * invDist3;
            Fz += dz * invDist3;
        }

        p[i].vx += dt * Fx;
        p[i].vy += dt * Fy;
        p[i].vz += dt * Fz;
    }
}

__global__ void integratePosition(Body *p, float dt, int n) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n) {
        p[i].x += p[i].vx * dt;
        p[i].y += p[i].vy * dt;
        p[i].z += p[i].vz * dt;
    }
}

CASE(nbody, "nbody") {
    const int nBodies = 20000;
    const float dt = 0.001f;
    Body *p = (Body *)buffer<float>((size_t)nBodies * 6, -1, 1);
    return [=] {
        int blockSize = 256, nBlocks = (nBodies + blockSize - 1) / blockSize;
        for (int iter = 0; iter < 2; iter++) {
            LAUNCH(bodyForce, nBlocks, blockSize, 0, p, dt, nBodies);
            LAUNCH(integratePosition, nBlocks, blockSize, 0, p, dt, nBodies);
        }
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// Project: PageRank on a web-like graph, pulling along incoming edges (CSR), a thread a page; the difference of two iterations is summed by an atomic.
__global__ void contribution(const float *rank, const int *outDegree, float *contrib, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < n) contrib[v] = outDegree[v] > 0 ? rank[v] / outDegree[v] : 0.0f;
}

__global__ void pagerank(const int *rowPtr, const int *colIdx, const float *contrib, float *newRank, int n, float damping) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < n) {
        float sum = 0.0f;
        for (int e = rowPtr[v]; e < rowPtr[v + 1]; e++) sum += contrib[colIdx[e]];
        newRank[v] = (1.0f - damping) / n + damping * sum;
    }
}

__global__ void difference(const float *a, const float *b, float *diff, int n) {
    __shared__ float cache[256];
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    cache[threadIdx.x] = v < n ? fabs(a[v] - b[v]) : 0.0f;
    __syncthreads();
    for (int i = blockDim.x / 2; i != 0; i /= 2) {
        if (threadIdx.x < i) cache[threadIdx.x] += cache[threadIdx.x + i];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(diff, cache[0]);
}

CASE(pages, "pagerank") {
    const int n = 1 << 20;
    std::vector<int> rowPtr(n + 1, 0), colIdx, outDegree(n, 0);
    uint32_t seed = 1;
    auto uniform = [&] {
        seed ^= seed << 13, seed ^= seed >> 17, seed ^= seed << 5;
        return (seed >> 8) / 16777216.0;
    };
    // in-degrees follow a power law, as in a web graph: a few pages have tens of thousands of links, most have a few
    for (int v = 0; v < n; ++v) {
        int degree = std::min(50000, (int)(3.0 * pow(1.0 - uniform(), -1.0 / 1.3)));
        rowPtr[v + 1] = rowPtr[v] + degree;
    }
    colIdx.resize(rowPtr[n]);
    for (auto &u : colIdx) {
        u = std::min(n - 1, (int)(uniform() * n));
        outDegree[u]++;
    }
    int *d_row = copied(rowPtr), *d_col = copied(colIdx), *d_out = copied(outDegree);
    float *rank = copied(std::vector<float>(n, 1.0f / n)), *next = buffer<float>(n), *contrib = buffer<float>(n), *diff = buffer<float>(1);
    return [=] {
        int blocks = (n + 255) / 256;
        float *now = rank, *then = next;
        for (int iter = 0; iter < 4; iter++) {
            CHECK(cudaMemsetAsync(diff, 0, sizeof(float)));
            LAUNCH(contribution, blocks, 256, 0, now, d_out, contrib, n);
            LAUNCH(pagerank, blocks, 256, 0, d_row, d_col, contrib, then, n, 0.85f);
            LAUNCH(difference, blocks, 256, 0, now, then, diff, n);
            std::swap(now, then);
        }
    };
}

int main(int argc, char **argv) { return run_cases(argc, argv); }
