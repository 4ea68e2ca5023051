// sum_tree

extern "C" __global__ void __launch_bounds__(128, 4) k_sum_tree(
    const float *__restrict__ x,
    float *y) {
  __shared__ float partial[128];
  const int group_x = int(blockIdx.x);
  const int local_index = int(threadIdx.x);
  float sum = 0.0f;
  for (int j = local_index; j < 300; j += 128) {
    sum += x[int(unsigned(group_x * 300) + unsigned(j))];
  }
  partial[local_index] = sum;
  __syncthreads();
  if (local_index < 64) {
    partial[local_index] = partial[local_index] + partial[local_index + 64];
  }
  __syncthreads();
  if (local_index < 32) {
    partial[local_index] = partial[local_index] + partial[local_index + 32];
  }
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
  if (local_index == 0) {
    y[group_x] = partial[0];
  }
}
