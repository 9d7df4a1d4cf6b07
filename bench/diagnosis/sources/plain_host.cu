// Ordinary small CUDA applications, as course projects and first versions of research code have them.
#include "host_harness.h"
#include <string>

// ---------------------------------------------------------------------------------------------------------------------
// Heat on a plate: Jacobi iterations until the residual is small (a step here: 100 iterations of the loop; the boundary is kept).
const int NX = 2048, NY = 2048;

__global__ void jacobi_kernel(float *a_new, const float *a, float *l2_norm, int ny, int nx) {
    int ix = blockIdx.x * blockDim.x + threadIdx.x + 1;
    int iy = blockIdx.y * blockDim.y + threadIdx.y + 1;
    float local_l2_norm = 0.0f;
    if (iy < ny - 1 && ix < nx - 1) {
        float new_val = 0.25f * (a[iy * nx + ix + 1] + a[iy * nx + ix - 1] + a[(iy + 1) * nx + ix] + a[(iy - 1) * nx + ix]);
        a_new[iy * nx + ix] = new_val;
        float residue = new_val - a[iy * nx + ix];
        local_l2_norm = residue * residue;
    }
    // warp, then one atomic a warp
    for (int offset = 16; offset > 0; offset /= 2) local_l2_norm += __shfl_down_sync(0xffffffff, local_l2_norm, offset);
    if ((threadIdx.y * blockDim.x + threadIdx.x) % 32 == 0) atomicAdd(l2_norm, local_l2_norm);
}

CASE(jacobi, "jacobi") {
    float *a = on_device((size_t)NX * NY), *a_new = on_device((size_t)NX * NY), *l2_norm_d = on_device(1);
    std::vector<float> start((size_t)NX * NY, 0.0f);
    for (int iy = 0; iy < NY; ++iy) {
        start[(size_t)iy * NX] = sinf(2.0f * 3.14159265f * iy / (NY - 1));
        start[(size_t)iy * NX + NX - 1] = start[(size_t)iy * NX];
    }
    CHECK(cudaMemcpy(a, start.data(), start.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(a_new, start.data(), start.size() * sizeof(float), cudaMemcpyHostToDevice));
    return [=](int) mutable {
        dim3 block(32, 8);
        dim3 grid((NX + block.x - 1) / block.x, (NY + block.y - 1) / block.y);
        float l2_norm = 1.0f;
        int iter = 0;
        while (l2_norm > 1e-8f && iter < 100) {
            CHECK(cudaMemset(l2_norm_d, 0, sizeof(float)));
            jacobi_kernel<<<grid, block>>>(a_new, a, l2_norm_d, NY, NX);
            CHECK(cudaGetLastError());
            CHECK(cudaMemcpy(&l2_norm, l2_norm_d, sizeof(float), cudaMemcpyDeviceToHost));
            l2_norm = sqrtf(l2_norm);
            std::swap(a, a_new);
            iter++;
        }
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// Edges of a video: RGB frames of 1920 x 1080 come from the "decoder", the GPU makes them grey, blurs them, takes Sobel edges; the picture of the edges comes back and is handed to the "encoder".
__global__ void rgb_to_gray(const uchar3 *in, unsigned char *out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    uchar3 p = in[y * w + x];
    out[y * w + x] = (unsigned char)(0.299f * p.x + 0.587f * p.y + 0.114f * p.z);
}

__constant__ float gauss[25];

__global__ void blur5(const unsigned char *in, unsigned char *out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float sum = 0;
    for (int dy = -2; dy <= 2; dy++)
        for (int dx = -2; dx <= 2; dx++) {
            int xx = min(max(x + dx, 0), w - 1), yy = min(max(y + dy, 0), h - 1);
            sum += gauss[(dy + 2) * 5 + dx + 2] * in[yy * w + xx];
        }
    out[y * w + x] = (unsigned char)sum;
}

__global__ void sobel(const unsigned char *in, unsigned char *out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    if (x == 0 || y == 0 || x == w - 1 || y == h - 1) {
        out[y * w + x] = 0;
        return;
    }
    int i = y * w + x;
    int gx = -in[i - w - 1] + in[i - w + 1] - 2 * in[i - 1] + 2 * in[i + 1] - in[i + w - 1] + in[i + w + 1];
    int gy = -in[i - w - 1] - 2 * in[i - w] - in[i - w + 1] + in[i + w - 1] + 2 * in[i + w] + in[i + w + 1];
    int g = (int)sqrtf((float)(gx * gx + gy * gy));
    out[i] = g > 255 ? 255 : g;
}

struct Decoder { // stands for cv::VideoCapture: a clip of 12 frames over and over
    std::vector<std::vector<unsigned char>> clip;
    size_t at = 0;
    Decoder(int w, int h) {
        for (int f = 0; f < 12; ++f) {
            std::vector<unsigned char> frame((size_t)w * h * 3);
            for (int y = 0; y < h; ++y)
                for (int x = 0; x < w; ++x)
                    for (int c = 0; c < 3; ++c) frame[((size_t)y * w + x) * 3 + c] = (unsigned char)(((x + 7 * f) / 40 * 37 + y / 30 * 91 + c * 50) ^ (x & 7));
            clip.push_back(frame);
        }
    }
    void read(std::vector<unsigned char> &frame) { frame = clip[at++ % clip.size()]; }
};

struct Encoder { // stands for cv::VideoWriter: keeps the last second
    std::vector<std::vector<unsigned char>> kept = std::vector<std::vector<unsigned char>>(25);
    size_t at = 0;
    void write(const std::vector<unsigned char> &frame) { kept[at++ % kept.size()] = frame; }
};

CASE(video, "video-edges") {
    const int w = 1920, h = 1080;
    float weights[25], total = 0;
    for (int i = 0; i < 25; ++i) total += weights[i] = expf(-((i / 5 - 2) * (i / 5 - 2) + (i % 5 - 2) * (i % 5 - 2)) / 2.0f);
    for (float &weight : weights) weight /= total;
    CHECK(cudaMemcpyToSymbol(gauss, weights, sizeof(weights)));
    uchar3 *d_rgb;
    unsigned char *d_gray, *d_blur, *d_edges;
    CHECK(cudaMalloc(&d_rgb, w * h * sizeof(uchar3)));
    CHECK(cudaMalloc(&d_gray, w * h));
    CHECK(cudaMalloc(&d_blur, w * h));
    CHECK(cudaMalloc(&d_edges, w * h));
    Decoder decoder(w, h);
    Encoder encoder;
    std::vector<unsigned char> frame(w * h * 3), edges(w * h);
    return [=](int) mutable {
        dim3 block(16, 16), grid((w + 15) / 16, (h + 15) / 16);
        for (int f = 0; f < 4; ++f) {
            decoder.read(frame);
            CHECK(cudaMemcpy(d_rgb, frame.data(), frame.size(), cudaMemcpyHostToDevice));
            rgb_to_gray<<<grid, block>>>(d_rgb, d_gray, w, h);
            blur5<<<grid, block>>>(d_gray, d_blur, w, h);
            sobel<<<grid, block>>>(d_blur, d_edges, w, h);
            CHECK(cudaGetLastError());
            CHECK(cudaDeviceSynchronize());
            CHECK(cudaMemcpy(edges.data(), d_edges, edges.size(), cudaMemcpyDeviceToHost));
            encoder.write(edges);
        }
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// A small galaxy: all pairs with tiles in shared memory, leapfrog; every 20th time step is written as a CSV file for the plotting script. A step here: 20 time steps.
const int N_STARS = 8192, TILE = 256;

__global__ void accelerations(const float4 *pos, float4 *acc, int n) {
    __shared__ float4 tile[TILE];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = pos[i];
    float ax = 0, ay = 0, az = 0;
    for (int start = 0; start < n; start += TILE) {
        tile[threadIdx.x] = pos[start + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < TILE; ++j) {
            float dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
            float d2 = dx * dx + dy * dy + dz * dz + 1e-3f;
            float inv = rsqrtf(d2);
            float f = tile[j].w * inv * inv * inv;
            ax += f * dx, ay += f * dy, az += f * dz;
        }
        __syncthreads();
    }
    acc[i] = make_float4(ax, ay, az, 0);
}

__global__ void kick(float4 *vel, const float4 *acc, float dt, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) vel[i].x += dt * acc[i].x, vel[i].y += dt * acc[i].y, vel[i].z += dt * acc[i].z;
}

__global__ void drift(float4 *pos, const float4 *vel, float dt, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) pos[i].x += dt * vel[i].x, pos[i].y += dt * vel[i].y, pos[i].z += dt * vel[i].z;
}

static void write_csv(const std::vector<float4> &pos, int frame) {
    char name[64];
    snprintf(name, sizeof(name), "/tmp/galaxy_%03d.csv", frame);
    FILE *file = fopen(name, "w");
    if (!file) {
        perror(name);
        exit(1);
    }
    fprintf(file, "x,y,z\n");
    for (const float4 &p : pos) fprintf(file, "%f,%f,%f\n", p.x, p.y, p.z);
    fclose(file);
}

CASE(galaxy, "galaxy") {
    std::vector<float4> pos(N_STARS), vel(N_STARS);
    srand(42);
    for (int i = 0; i < N_STARS; ++i) {
        float r = sqrtf(rand() / (float)RAND_MAX) * 4 + 0.1f, phi = 6.2831853f * rand() / (float)RAND_MAX, v = 0.7f / sqrtf(r);
        pos[i] = make_float4(r * cosf(phi), r * sinf(phi), 0.1f * (rand() / (float)RAND_MAX - 0.5f), 1.0f / N_STARS);
        vel[i] = make_float4(-v * sinf(phi), v * cosf(phi), 0, 0);
    }
    float4 *d_pos, *d_vel, *d_acc;
    CHECK(cudaMalloc(&d_pos, N_STARS * sizeof(float4)));
    CHECK(cudaMalloc(&d_vel, N_STARS * sizeof(float4)));
    CHECK(cudaMalloc(&d_acc, N_STARS * sizeof(float4)));
    CHECK(cudaMemcpy(d_pos, pos.data(), N_STARS * sizeof(float4), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_vel, vel.data(), N_STARS * sizeof(float4), cudaMemcpyHostToDevice));
    int frame = 0;
    return [=](int) mutable {
        const float dt = 0.01f;
        int blocks = N_STARS / TILE;
        for (int t = 0; t < 20; ++t) {
            accelerations<<<blocks, TILE>>>(d_pos, d_acc, N_STARS);
            kick<<<blocks, TILE>>>(d_vel, d_acc, dt, N_STARS);
            drift<<<blocks, TILE>>>(d_pos, d_vel, dt, N_STARS);
            CHECK(cudaGetLastError());
        }
        CHECK(cudaMemcpy(pos.data(), d_pos, N_STARS * sizeof(float4), cudaMemcpyDeviceToHost));
        write_csv(pos, frame++ % 10);
    };
}

// ---------------------------------------------------------------------------------------------------------------------
// Many small systems of equations (32 x 32, symmetric positive definite: a fit a pixel): a block a system, Cholesky in shared memory. The function is the one the rest of the code calls, with vectors of the host.
const int DIM = 32;

__global__ void cholesky_solve(const float *A, const float *b, float *x, int count) {
    __shared__ float L[DIM][DIM];
    __shared__ float y[DIM];
    int system = blockIdx.x, t = threadIdx.x;
    if (system >= count) return;
    for (int i = 0; i < DIM; i++) L[i][t] = A[(size_t)system * DIM * DIM + i * DIM + t];
    y[t] = b[system * DIM + t];
    __syncthreads();
    for (int k = 0; k < DIM; k++) {
        if (t == k) L[k][k] = sqrtf(L[k][k]);
        __syncthreads();
        if (t > k) L[t][k] /= L[k][k];
        __syncthreads();
        if (t > k)
            for (int j = k + 1; j <= t; j++) L[t][j] -= L[t][k] * L[j][k];
        __syncthreads();
    }
    for (int k = 0; k < DIM; k++) { // L y = b
        if (t == k) y[k] /= L[k][k];
        __syncthreads();
        if (t > k) y[t] -= L[t][k] * y[k];
        __syncthreads();
    }
    for (int k = DIM - 1; k >= 0; k--) { // L' x = y
        if (t == k) y[k] /= L[k][k];
        __syncthreads();
        if (t < k) y[t] -= L[k][t] * y[k];
        __syncthreads();
    }
    x[system * DIM + t] = y[t];
}

static std::vector<float> solve_all(const std::vector<float> &A, const std::vector<float> &b, int count) {
    float *d_A, *d_b, *d_x;
    CHECK(cudaMalloc(&d_A, A.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_b, b.size() * sizeof(float)));
    CHECK(cudaMalloc(&d_x, b.size() * sizeof(float)));
    CHECK(cudaMemcpy(d_A, A.data(), A.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_b, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice));
    cholesky_solve<<<count, DIM>>>(d_A, d_b, d_x, count);
    CHECK(cudaGetLastError());
    std::vector<float> x(b.size());
    CHECK(cudaMemcpy(x.data(), d_x, x.size() * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(d_A));
    CHECK(cudaFree(d_b));
    CHECK(cudaFree(d_x));
    return x;
}

CASE(systems, "small-systems") {
    const int count = 8192;
    std::vector<float> A((size_t)count * DIM * DIM), b((size_t)count * DIM);
    for (int s = 0; s < count; ++s)
        for (int i = 0; i < DIM; ++i) {
            b[s * DIM + i] = 0.01f * ((s * 7 + i * 13) % 100);
            for (int j = 0; j < DIM; ++j) A[((size_t)s * DIM + i) * DIM + j] = expf(-0.3f * abs(i - j)) + (i == j ? 0.1f + 0.001f * (s % 50) : 0.0f);
        }
    return [=](int) mutable {
        std::vector<float> x = solve_all(A, b, count);
        float damp = 0.999f; // the next iteration of the fit starts from the solution
        for (size_t i = 0; i < b.size(); ++i) b[i] = damp * b[i] + 1e-3f * x[i];
    };
}

int main(int argc, char **argv) { return run_cases(argc, argv); }
