// subgroup_sum

template <class T> static __device__ T warp_add(T x) {
  for (int lanes = 16; lanes > 0; lanes >>= 1) {
    const T y = __shfl_xor_sync(0xffffffffu, x, lanes);
    x = x + y;
  }
  return x;
}

extern "C" __global__ void __launch_bounds__(64, 8) k_subgroup_sum(
    const float *__restrict__ x,
    float *y) {
  __shared__ float partial[64];
  const int group_x = int(blockIdx.x);
  const int lane = int(threadIdx.x) % 32;
  const int local_index = int(threadIdx.x);
  const float x0 = x[group_x * 64 + local_index];
  const float part = warp_add(x0);
  partial[local_index] = (lane == 0 ? part : 0.0f);
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
