// Matrix product C = A B of square float matrices, from naive to register-blocked: what does each step bring?
//
//     ./matmul --variant tiled --size 2048
//
// checks the result and prints one line: variant=... size=... ms=... gflops=...
// All matrices are row-major: element (row, col) is at [row * n + col]. n must be a multiple of 64.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>
#ifdef USE_CUBLAS
#include <cublas_v2.h>
#endif

#define CHECK(call)                                                                                              \
    do {                                                                                                         \
        cudaError_t status = (call);                                                                             \
        if (status != cudaSuccess) {                                                                             \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status));      \
            std::exit(1);                                                                                        \
        }                                                                                                        \
    } while (0)

// --- The variants

// One thread per element of C. Threads of a warp (neighbours in x) walk down a column of C: each of their loads of A
// and stores to C touches a cache line of its own.
__global__ void matmul_naive(const float *a, const float *b, float *c, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + col];
    c[row * n + col] = sum;
}

// The same with x along the columns: a warp's loads of B and stores to C fall into one cache line (they coalesce).
__global__ void matmul_coalesced(const float *a, const float *b, float *c, int n) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + col];
    c[row * n + col] = sum;
}

// A block brings a tile of A and of B into shared memory once and uses each element TILE times.
constexpr int TILE = 32;

__global__ void matmul_tiled(const float *a, const float *b, float *c, int n) {
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, col = blockIdx.x * TILE + x;
    float sum = 0.0f;
    for (int start = 0; start < n; start += TILE) {
        tile_a[y][x] = a[row * n + start + x];
        tile_b[y][x] = b[(start + y) * n + col];
        __syncthreads();  // the tiles are complete
        for (int k = 0; k < TILE; ++k) sum += tile_a[y][k] * tile_b[k][x];
        __syncthreads();  // nobody needs the tiles any more
    }
    c[row * n + col] = sum;
}

// A thread computes PATCH x PATCH elements of C in registers: PATCH + PATCH loads from shared memory serve
// PATCH * PATCH multiplications, so that shared memory is no longer what limits the speed.
constexpr int BLOCK = 64;  // a block of threads computes BLOCK x BLOCK elements
constexpr int DEPTH = 16;  // from this much of A's columns and B's rows at a time
constexpr int PATCH = 4;
constexpr int SIDE = BLOCK / PATCH;  // threads a side

__global__ void matmul_blocked(const float *a, const float *b, float *c, int n) {
    __shared__ float tile_a[DEPTH][BLOCK + 1];  // A's tile is kept transposed; + 1 spreads its columns over the banks
    __shared__ float tile_b[DEPTH][BLOCK];
    int x = threadIdx.x, y = threadIdx.y, thread = y * SIDE + x;
    int first_row = blockIdx.y * BLOCK, first_col = blockIdx.x * BLOCK;
    float sum[PATCH][PATCH] = {};
    for (int start = 0; start < n; start += DEPTH) {
        for (int i = thread; i < BLOCK * DEPTH; i += SIDE * SIDE) {
            tile_a[i % DEPTH][i / DEPTH] = a[(first_row + i / DEPTH) * n + start + i % DEPTH];
            tile_b[i / BLOCK][i % BLOCK] = b[(start + i / BLOCK) * n + first_col + i % BLOCK];
        }
        __syncthreads();
        for (int k = 0; k < DEPTH; ++k) {
            float left[PATCH], right[PATCH];
            for (int i = 0; i < PATCH; ++i) left[i] = tile_a[k][y + i * SIDE];
            for (int j = 0; j < PATCH; ++j) right[j] = tile_b[k][x + j * SIDE];
            for (int i = 0; i < PATCH; ++i)
                for (int j = 0; j < PATCH; ++j) sum[i][j] += left[i] * right[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < PATCH; ++i)
        for (int j = 0; j < PATCH; ++j) c[(first_row + y + i * SIDE) * n + first_col + x + j * SIDE] = sum[i][j];
}

#ifdef USE_CUBLAS
// cuBLAS is column-major: seen that way our A, B and C are transposed, and C^T = B^T A^T.
void matmul_cublas(const float *a, const float *b, float *c, int n) {
    static cublasHandle_t handle = nullptr;
    if (!handle && cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS) {
        std::fprintf(stderr, "cublasCreate failed\n");
        std::exit(1);
    }
    const float one = 1.0f, zero = 0.0f;
    cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, b, n, a, n, &zero, c, n);
}
#endif

// --- Running them

using Launch = void (*)(const float *, const float *, float *, int);

struct Variant {
    const char *name;
    Launch launch;
};

const Variant VARIANTS[] = {
    {"naive", [](const float *a, const float *b, float *c, int n) {
         matmul_naive<<<dim3(n / 32, n / 32), dim3(32, 32)>>>(a, b, c, n);
     }},
    {"coalesced", [](const float *a, const float *b, float *c, int n) {
         matmul_coalesced<<<dim3(n / 32, n / 32), dim3(32, 32)>>>(a, b, c, n);
     }},
    {"tiled", [](const float *a, const float *b, float *c, int n) {
         matmul_tiled<<<dim3(n / TILE, n / TILE), dim3(TILE, TILE)>>>(a, b, c, n);
     }},
    {"blocked", [](const float *a, const float *b, float *c, int n) {
         matmul_blocked<<<dim3(n / BLOCK, n / BLOCK), dim3(SIDE, SIDE)>>>(a, b, c, n);
     }},
#ifdef USE_CUBLAS
    {"cublas", matmul_cublas},
#endif
};

[[noreturn]] void usage(const char *program) {
    std::fprintf(stderr, "usage: %s [--variant NAME] [--size N] [--repeats N]\n  variants:", program);
    for (const Variant &variant : VARIANTS) std::fprintf(stderr, " %s", variant.name);
    std::fprintf(stderr, "\n  N of --size must be a multiple of %d, at most 32768\n", BLOCK);
    std::exit(2);
}

const Variant *find(const char *name) {
    for (const Variant &variant : VARIANTS)
        if (std::strcmp(variant.name, name) == 0) return &variant;
    return nullptr;
}

// A sample of C's elements, computed again on the CPU in double precision.
bool correct(const std::vector<float> &a, const std::vector<float> &b, const std::vector<float> &c, int n) {
    for (int sample = 0; sample < 1000; ++sample) {
        size_t row = std::rand() % n, col = std::rand() % n;
        double expected = 0.0;
        for (size_t k = 0; k < (size_t)n; ++k) expected += (double)a[row * n + k] * b[k * n + col];
        double found = c[row * n + col];
        if (!(std::abs(found - expected) <= 1e-5 * n)) {  // also false for NaN; float sums of n values in [-1, 1]
            std::fprintf(stderr, "wrong result at (%zu, %zu): %g, not %g\n", row, col, found, expected);
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv) {
    const Variant *variant = find("naive");
    int n = 1024, repeats = 10;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc) usage(argv[0]);
        if (std::strcmp(argv[i], "--variant") == 0) variant = find(argv[i + 1]);
        else if (std::strcmp(argv[i], "--size") == 0) n = std::atoi(argv[i + 1]);
        else if (std::strcmp(argv[i], "--repeats") == 0) repeats = std::atoi(argv[i + 1]);
        else usage(argv[0]);
    }
    if (!variant || n <= 0 || n > 32768 || n % BLOCK || repeats < 1) usage(argv[0]);

    size_t count = (size_t)n * n, bytes = count * sizeof(float);
    std::vector<float> a(count), b(count), c(count);
    auto random = [] { return 2.0f * std::rand() / (float)RAND_MAX - 1.0f; };
    std::generate(a.begin(), a.end(), random);
    std::generate(b.begin(), b.end(), random);

    float *device_a, *device_b, *device_c;
    CHECK(cudaMalloc(&device_a, bytes));
    CHECK(cudaMalloc(&device_b, bytes));
    CHECK(cudaMalloc(&device_c, bytes));
    CHECK(cudaMemcpy(device_a, a.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_b, b.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(device_c, 0xff, bytes));  // NaN everywhere: an element that nobody writes is found

    variant->launch(device_a, device_b, device_c, n);  // warm up
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());

    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    for (int i = 0; i < repeats; ++i) variant->launch(device_a, device_b, device_c, n);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaGetLastError());
    float total_ms = 0.0f;
    CHECK(cudaEventElapsedTime(&total_ms, start, stop));

    CHECK(cudaMemcpy(c.data(), device_c, bytes, cudaMemcpyDeviceToHost));
    if (!correct(a, b, c, n)) return 1;
    double ms = total_ms / repeats, gflops = 2.0 * n * n * n / ms / 1e6;
    std::printf("variant=%s size=%d ms=%.4f gflops=%.1f\n", variant->name, n, ms, gflops);
    CHECK(cudaFree(device_a));
    CHECK(cudaFree(device_b));
    CHECK(cudaFree(device_c));
    return 0;
}
