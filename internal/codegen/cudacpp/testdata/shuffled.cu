// shuffled

extern "C" __global__ void __launch_bounds__(64, 8) k_shuffled(
    const float *__restrict__ x,
    float *y) {
  const int local_index = int(threadIdx.x);
  const float x0 = x[local_index];
  const float other0 = __shfl_xor_sync(0xffffffffu, x0, 1);
  const float other1 = __shfl_xor_sync(0xffffffffu, x0, 6);
  const float other2 = __shfl_xor_sync(0xffffffffu, x0, 31);
  y[local_index] = ((x0 * 2.0f + other0) * 2.0f + other1) * 2.0f + other2;
}
