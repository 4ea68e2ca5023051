// softmax_row

static __device__ float max_nan(float a, float b) {
  float y;
#if __CUDA_ARCH__ >= 800
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
#else
  y = a > b || a != a ? a : b;
#endif
  return y;
}

extern "C" __global__ void __launch_bounds__(32, 16) k_softmax_row(
    const float *__restrict__ x,
    float *y) {
  __shared__ float partial[32];
  const int group_x = int(blockIdx.x);
  const int local_index = int(threadIdx.x);
  float top = -3.4028235e+38f;
  for (int j = local_index; j < 70; j += 32) {
    top = max_nan(top, x[int(unsigned(group_x * 70) + unsigned(j))]);
  }
  partial[local_index] = top;
  __syncthreads();
  if (local_index < 16) {
    partial[local_index] = max_nan(partial[local_index], partial[local_index + 16]);
  }
  __syncthreads();
  if (local_index < 8) {
    partial[local_index] = max_nan(partial[local_index], partial[local_index + 8]);
  }
  __syncthreads();
  if (local_index < 4) {
    partial[local_index] = max_nan(partial[local_index], partial[local_index + 4]);
  }
  __syncthreads();
  if (local_index < 2) {
    partial[local_index] = max_nan(partial[local_index], partial[local_index + 2]);
  }
  __syncthreads();
  if (local_index < 1) {
    partial[local_index] = max_nan(partial[local_index], partial[local_index + 1]);
  }
  __syncthreads();
  const float row_top = partial[0];
  float sum = 0.0f;
  for (int j = local_index; j < 70; j += 32) {
    sum += expf(x[int(unsigned(group_x * 70) + unsigned(j))] - row_top);
  }
  __syncthreads();
  partial[local_index] = sum;
  __syncthreads();
  if (local_index < 16) {
    partial[local_index] = partial[local_index] + partial[local_index + 16];
  }
  __syncthreads();
  if (local_index < 8) {
    partial[local_index] = partial[local_index] + partial[local_index + 8];
  }
  __syncthreads();
  if (local_index < 4) {
    partial[local_index] = partial[local_index] + partial[local_index + 4];
  }
  __syncthreads();
  if (local_index < 2) {
    partial[local_index] = partial[local_index] + partial[local_index + 2];
  }
  __syncthreads();
  if (local_index < 1) {
    partial[local_index] = partial[local_index] + partial[local_index + 1];
  }
  __syncthreads();
  const float scale = 1.0f / partial[0];
  for (int j = local_index; j < 70; j += 32) {
    const int t0 = int(unsigned(group_x * 70) + unsigned(j));
    y[t0] = expf(x[t0] - row_top) * scale;
  }
}
