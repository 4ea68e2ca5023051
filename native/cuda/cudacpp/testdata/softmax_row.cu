// softmax_row

extern "C" __global__ void __launch_bounds__(32, 16) k_softmax_row(
    const float *__restrict__ x,
    float *y) {
  __shared__ float partial[32];
  const int group_x = int(blockIdx.x);
  const int local_index = int(threadIdx.x);
  float top = -3.4028235e+38f;
  for (int j = local_index; j < 70; j += 32) {
    const float t0 = x[int(unsigned(group_x * 70) + unsigned(j))];
    top = (top > t0 || top != top ? top : t0);
  }
  partial[local_index] = top;
  __syncthreads();
  if (local_index < 16) {
    const float t1 = partial[local_index];
    const float t2 = partial[local_index + 16];
    partial[local_index] = (t1 > t2 || t1 != t1 ? t1 : t2);
  }
  __syncthreads();
  if (local_index < 8) {
    const float t3 = partial[local_index];
    const float t4 = partial[local_index + 8];
    partial[local_index] = (t3 > t4 || t3 != t3 ? t3 : t4);
  }
  __syncthreads();
  if (local_index < 4) {
    const float t5 = partial[local_index];
    const float t6 = partial[local_index + 4];
    partial[local_index] = (t5 > t6 || t5 != t5 ? t5 : t6);
  }
  __syncthreads();
  if (local_index < 2) {
    const float t7 = partial[local_index];
    const float t8 = partial[local_index + 2];
    partial[local_index] = (t7 > t8 || t7 != t7 ? t7 : t8);
  }
  __syncthreads();
  if (local_index < 1) {
    const float t9 = partial[local_index];
    const float t10 = partial[local_index + 1];
    partial[local_index] = (t9 > t10 || t9 != t9 ? t9 : t10);
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
    const int t11 = int(unsigned(group_x * 70) + unsigned(j));
    y[t11] = expf(x[t11] - row_top) * scale;
  }
}
