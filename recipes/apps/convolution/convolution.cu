// A layer's forward convolution on many images, step by step: what does each optimisation bring?
//
//     ./convolution --variant shared --layer 2 --images 10000
//
// checks the result and prints one line: variant=... layer=... images=... ms=... gflops=...
// Images are x[image][channel][row][col], weights w[map][channel][p][q], results y[image][map][row][col].

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                              \
    do {                                                                                                         \
        cudaError_t status = (call);                                                                             \
        if (status != cudaSuccess) {                                                                             \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status));      \
            std::exit(1);                                                                                        \
        }                                                                                                        \
    } while (0)

constexpr int K = 5;            // rows and columns of a filter
constexpr int MOST_MAPS = 16;   // of a layer
constexpr int MOST_WEIGHTS = MOST_MAPS * 6 * K * K;

struct Layer {
    int maps, channels, size, out;  // size: rows and columns of an image; out: of a result

    __host__ __device__ int pixels() const { return out * out; }
    __host__ __device__ int depth() const { return channels * K * K; }  // products behind one element
    __host__ __device__ size_t x(size_t n, int c, int row, int col) const {
        return ((n * channels + c) * size + row) * size + col;
    }
    __host__ __device__ size_t y(size_t n, int m, int row, int col) const {
        return ((n * maps + m) * out + row) * out + col;
    }
    __host__ __device__ int w(int m, int c, int p, int q) const { return ((m * channels + c) * K + p) * K + q; }
};

const Layer LAYERS[] = {{6, 1, 48, 44}, {16, 6, 22, 18}};  // LeNet's two on images of 48 x 48, pooled in between

__constant__ float constant_weights[MOST_WEIGHTS];

// --- The variants

// One thread per element of the result; weights come from global memory, or from constant memory, which
// hands one value to a whole warp at once.
template <bool CONSTANT>
__device__ void conv_element(Layer layer, const float *x, const float *w, float *y) {
    int pixel = blockIdx.x * blockDim.x + threadIdx.x, m = blockIdx.y, n = blockIdx.z;
    if (pixel >= layer.pixels()) return;
    int row = pixel / layer.out, col = pixel % layer.out;
    float sum = 0.0f;
    for (int c = 0; c < layer.channels; ++c)
        for (int p = 0; p < K; ++p)
            for (int q = 0; q < K; ++q)
                sum += x[layer.x(n, c, row + p, col + q)] *
                       (CONSTANT ? constant_weights[layer.w(m, c, p, q)] : w[layer.w(m, c, p, q)]);
    y[layer.y(n, m, row, col)] = sum;
}

__global__ void conv_naive(Layer layer, const float *x, const float *w, float *y) {
    conv_element<false>(layer, x, w, y);
}

__global__ void conv_constant(Layer layer, const float *x, const float *w, float *y) {
    conv_element<true>(layer, x, w, y);
}

// A block brings the part of a channel that its TILE x TILE results need into shared memory.
constexpr int TILE = 16;
constexpr int HALO = TILE + K - 1;

__device__ void load_tile(float (*tile)[HALO], Layer layer, const float *x, int n, int c, int row0, int col0) {
    for (int i = threadIdx.y * TILE + threadIdx.x; i < HALO * HALO; i += TILE * TILE) {
        int row = row0 + i / HALO, col = col0 + i % HALO;
        bool inside = row < layer.size && col < layer.size;
        tile[i / HALO][i % HALO] = inside ? x[layer.x(n, c, row, col)] : 0.0f;
    }
}

__global__ void conv_shared(Layer layer, const float *x, const float *w, float *y) {
    __shared__ float tile[HALO][HALO];
    int tiles = (layer.out + TILE - 1) / TILE, m = blockIdx.y, n = blockIdx.z;
    int row0 = blockIdx.x / tiles * TILE, col0 = blockIdx.x % tiles * TILE;
    int row = row0 + threadIdx.y, col = col0 + threadIdx.x;
    float sum = 0.0f;
    for (int c = 0; c < layer.channels; ++c) {
        load_tile(tile, layer, x, n, c, row0, col0);
        __syncthreads();  // the tile is complete
        for (int p = 0; p < K; ++p)
            for (int q = 0; q < K; ++q) sum += tile[threadIdx.y + p][threadIdx.x + q] * w[layer.w(m, c, p, q)];
        __syncthreads();  // nobody needs the tile any more
    }
    if (row < layer.out && col < layer.out) y[layer.y(n, m, row, col)] = sum;
}

// Two tiles take turns: the next channel is loaded while this one is used, and one barrier is enough.
__global__ void conv_double_buffer(Layer layer, const float *x, const float *w, float *y) {
    __shared__ float tiles[2][HALO][HALO];
    int across = (layer.out + TILE - 1) / TILE, m = blockIdx.y, n = blockIdx.z;
    int row0 = blockIdx.x / across * TILE, col0 = blockIdx.x % across * TILE;
    int row = row0 + threadIdx.y, col = col0 + threadIdx.x;
    float sum = 0.0f;
    load_tile(tiles[0], layer, x, n, 0, row0, col0);
    for (int c = 0; c < layer.channels; ++c) {
        __syncthreads();
        if (c + 1 < layer.channels) load_tile(tiles[(c + 1) % 2], layer, x, n, c + 1, row0, col0);
        for (int p = 0; p < K; ++p)
            for (int q = 0; q < K; ++q)
                sum += tiles[c % 2][threadIdx.y + p][threadIdx.x + q] * constant_weights[layer.w(m, c, p, q)];
    }
    if (row < layer.out && col < layer.out) y[layer.y(n, m, row, col)] = sum;
}

// Convolution as a product of matrices: y = w [maps x depth] times u [depth x pixels], where u holds each
// value of x up to K * K times. First u is written to memory (unrolled), or its tiles are made on the way (fused).
__device__ float unrolled_value(Layer layer, const float *x, int n, int k, int pixel) {
    int c = k / (K * K), p = k / K % K, q = k % K;
    return x[layer.x(n, c, pixel / layer.out + p, pixel % layer.out + q)];
}

__global__ void conv_unroll(Layer layer, const float *x, float *u) {
    int pixel = blockIdx.x * blockDim.x + threadIdx.x, k = blockIdx.y, n = blockIdx.z;
    if (pixel >= layer.pixels()) return;
    u[((size_t)n * layer.depth() + k) * layer.pixels() + pixel] = unrolled_value(layer, x, n, k, pixel);
}

template <bool FUSED>
__device__ void conv_product(Layer layer, const float *from, const float *w, float *y) {
    __shared__ float tile_w[TILE][TILE], tile_u[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y, n = blockIdx.z;
    int pixel = blockIdx.x * TILE + tx, m = blockIdx.y * TILE + ty, depth = layer.depth(), pixels = layer.pixels();
    float sum = 0.0f;
    for (int start = 0; start < depth; start += TILE) {
        bool inside = start + ty < depth && pixel < pixels;
        tile_w[ty][tx] = m < layer.maps && start + tx < depth ? w[m * depth + start + tx] : 0.0f;
        tile_u[ty][tx] = !inside ? 0.0f
                         : FUSED ? unrolled_value(layer, from, n, start + ty, pixel)
                                 : from[((size_t)n * depth + start + ty) * pixels + pixel];
        __syncthreads();
        for (int k = 0; k < TILE; ++k) sum += tile_w[ty][k] * tile_u[k][tx];
        __syncthreads();
    }
    if (m < layer.maps && pixel < pixels) y[((size_t)n * layer.maps + m) * pixels + pixel] = sum;
}

__global__ void conv_matmul(Layer layer, const float *u, const float *w, float *y) {
    conv_product<false>(layer, u, w, y);
}

__global__ void conv_fused(Layer layer, const float *x, const float *w, float *y) {
    conv_product<true>(layer, x, w, y);
}

// A thread computes a pixel of all maps: each value of x is loaded once and used MAPS times, from a register. The
// weights are in shared memory, those of all maps side by side, so that one load brings several.
template <int MAPS, class Number>
__global__ void conv_registers(Layer layer, const Number *x, const float *w, Number *y) {
    __shared__ __align__(16) float weights[MOST_WEIGHTS];
    int depth = layer.depth();
    for (int i = threadIdx.x; i < MAPS * depth; i += blockDim.x) weights[i % depth * MAPS + i / depth] = w[i];
    __syncthreads();
    int pixel = blockIdx.x * blockDim.x + threadIdx.x, n = blockIdx.y;
    if (pixel >= layer.pixels()) return;
    int row = pixel / layer.out, col = pixel % layer.out;
    float sum[MAPS] = {};
    for (int c = 0; c < layer.channels; ++c)
        for (int p = 0; p < K; ++p)
            for (int q = 0; q < K; ++q) {
                float value = x[layer.x(n, c, row + p, col + q)];
                for (int m = 0; m < MAPS; ++m) sum[m] += value * weights[layer.w(0, c, p, q) * MAPS + m];
            }
    for (int m = 0; m < MAPS; ++m) y[layer.y(n, m, row, col)] = sum[m];
}

// --- Running them

struct Data {
    Layer layer;
    int images;
    float *x, *w, *y, *u;
    __half *half_x, *half_y;
};

dim3 elements(const Data &d, int rows) { return dim3((d.layer.pixels() + 255) / 256, rows, d.images); }

dim3 tiles(const Data &d) {
    int across = (d.layer.out + TILE - 1) / TILE;
    return dim3(across * across, d.layer.maps, d.images);
}

dim3 products(const Data &d) {
    return dim3((d.layer.pixels() + TILE - 1) / TILE, (d.layer.maps + TILE - 1) / TILE, d.images);
}

template <class Number>
void launch_registers(const Data &d, const Number *x, Number *y) {
    dim3 grid((d.layer.pixels() + 127) / 128, d.images);
    if (d.layer.maps == 6) conv_registers<6><<<grid, 128>>>(d.layer, x, d.w, y);
    else conv_registers<16><<<grid, 128>>>(d.layer, x, d.w, y);
}

struct Variant {
    const char *name;
    void (*launch)(const Data &);
    bool half = false, unrolls = false;
};

const dim3 SQUARE(TILE, TILE);
const Variant VARIANTS[] = {
    {"naive", [](const Data &d) { conv_naive<<<elements(d, d.layer.maps), 256>>>(d.layer, d.x, d.w, d.y); }},
    {"constant", [](const Data &d) { conv_constant<<<elements(d, d.layer.maps), 256>>>(d.layer, d.x, d.w, d.y); }},
    {"shared", [](const Data &d) { conv_shared<<<tiles(d), SQUARE>>>(d.layer, d.x, d.w, d.y); }},
    {"double_buffer", [](const Data &d) { conv_double_buffer<<<tiles(d), SQUARE>>>(d.layer, d.x, d.w, d.y); }},
    {"unrolled", [](const Data &d) {
         conv_unroll<<<elements(d, d.layer.depth()), 256>>>(d.layer, d.x, d.u);
         conv_matmul<<<products(d), SQUARE>>>(d.layer, d.u, d.w, d.y);
     }, false, true},
    {"fused", [](const Data &d) { conv_fused<<<products(d), SQUARE>>>(d.layer, d.x, d.w, d.y); }},
    {"registers", [](const Data &d) { launch_registers(d, d.x, d.y); }},
    {"half", [](const Data &d) { launch_registers(d, d.half_x, d.half_y); }, true},
};

[[noreturn]] void usage(const char *program) {
    std::fprintf(stderr, "usage: %s [--variant NAME] [--layer 1|2] [--images N] [--repeats N]\n  variants:", program);
    for (const Variant &variant : VARIANTS) std::fprintf(stderr, " %s", variant.name);
    std::fprintf(stderr, "\n  N of --images is at most 65535\n");
    std::exit(2);
}

const Variant *find(const char *name) {
    for (const Variant &variant : VARIANTS)
        if (std::strcmp(variant.name, name) == 0) return &variant;
    return nullptr;
}

// A sample of the result's elements, computed again on the CPU in double precision.
bool correct(Layer layer, int images, const std::vector<float> &x, const std::vector<float> &w,
             const std::vector<float> &y, double tolerance) {
    for (int sample = 0; sample < 1000; ++sample) {
        int n = std::rand() % images, m = std::rand() % layer.maps;
        int row = std::rand() % layer.out, col = std::rand() % layer.out;
        double expected = 0.0;
        for (int c = 0; c < layer.channels; ++c)
            for (int p = 0; p < K; ++p)
                for (int q = 0; q < K; ++q)
                    expected += (double)x[layer.x(n, c, row + p, col + q)] * w[layer.w(m, c, p, q)];
        double found = y[layer.y(n, m, row, col)];
        if (!(std::abs(found - expected) <= tolerance)) {  // also false for NaN
            std::fprintf(stderr, "wrong result at (%d, %d, %d, %d): %g, not %g\n", n, m, row, col, found, expected);
            return false;
        }
    }
    return true;
}

template <class Number>
Number *to_gpu(const std::vector<Number> &values) {
    Number *there;
    CHECK(cudaMalloc(&there, values.size() * sizeof(Number)));
    CHECK(cudaMemcpy(there, values.data(), values.size() * sizeof(Number), cudaMemcpyHostToDevice));
    return there;
}

int main(int argc, char **argv) {
    const Variant *variant = find("naive");
    int number = 1, images = 10000, repeats = 10;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc) usage(argv[0]);
        if (std::strcmp(argv[i], "--variant") == 0) variant = find(argv[i + 1]);
        else if (std::strcmp(argv[i], "--layer") == 0) number = std::atoi(argv[i + 1]);
        else if (std::strcmp(argv[i], "--images") == 0) images = std::atoi(argv[i + 1]);
        else if (std::strcmp(argv[i], "--repeats") == 0) repeats = std::atoi(argv[i + 1]);
        else usage(argv[0]);
    }
    if (!variant || number < 1 || number > 2 || images < 1 || images > 65535 || repeats < 1) usage(argv[0]);

    Layer layer = LAYERS[number - 1];
    size_t results = (size_t)images * layer.maps * layer.pixels();
    std::vector<float> x((size_t)images * layer.channels * layer.size * layer.size), w(layer.maps * layer.depth());
    auto random = [] { return 2.0f * std::rand() / (float)RAND_MAX - 1.0f; };
    std::generate(x.begin(), x.end(), random);
    std::generate(w.begin(), w.end(), random);
    std::vector<float> y(results, NAN);  // so that an element that nobody writes is found
    std::vector<__half> half_y(variant->half ? results : 0, __float2half(NAN));

    Data data{layer, images};
    data.w = to_gpu(w);
    if (variant->half) {
        data.half_x = to_gpu(std::vector<__half>(x.begin(), x.end()));
        data.half_y = to_gpu(half_y);
    } else {
        data.x = to_gpu(x);
        data.y = to_gpu(y);
    }
    if (variant->unrolls) CHECK(cudaMalloc(&data.u, (size_t)images * layer.depth() * layer.pixels() * sizeof(float)));
    CHECK(cudaMemcpyToSymbol(constant_weights, w.data(), w.size() * sizeof(float)));

    variant->launch(data);  // warm up
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());

    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    for (int i = 0; i < repeats; ++i) variant->launch(data);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaGetLastError());
    float total_ms = 0.0f;
    CHECK(cudaEventElapsedTime(&total_ms, start, stop));

    if (variant->half) {
        CHECK(cudaMemcpy(half_y.data(), data.half_y, results * sizeof(__half), cudaMemcpyDeviceToHost));
        y.assign(half_y.begin(), half_y.end());
    } else {
        CHECK(cudaMemcpy(y.data(), data.y, results * sizeof(float), cudaMemcpyDeviceToHost));
    }
    if (!correct(layer, images, x, w, y, variant->half ? 5e-2 : 1e-3)) return 1;
    double ms = total_ms / repeats, gflops = 2.0 * results * layer.depth() / ms / 1e6;
    std::printf("variant=%s layer=%d images=%d ms=%.4f gflops=%.1f\n", variant->name, number, images, ms, gflops);
    return 0;
}
