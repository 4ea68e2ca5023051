// scale_tail

struct Run {
  float scalar0;
};

extern "C" __global__ void __launch_bounds__(64, 8) k_scale_tail(
    const float *__restrict__ x,
    float *y,
    const Run *__restrict__ run) {
  const int group_x = int(blockIdx.x);
  const int local_x = int(threadIdx.x);
  const float scalar0 = run->scalar0;
  const int i = group_x * 64 + local_x;
  if (i < 1000) {
    y[i] = x[i] * scalar0 + 0.5f;
  }
}
