// scan_loop

extern "C" __global__ void __launch_bounds__(16, 32) k_scan_loop(
    const float *__restrict__ x,
    float *y) {
  const int group_x = int(blockIdx.x);
  const int local_index = int(threadIdx.x + 8u * (threadIdx.y + 2u * threadIdx.z));
  const int row = group_x * 16 + local_index;
  if (row < 40) {
    float sum = 0.0f;
    for (int j = 0; j < 9; j++) {
      sum += x[int(unsigned(row) * 9u + unsigned(j))];
      y[int(unsigned(row) * 9u + unsigned(j))] = sum;
    }
  }
}
