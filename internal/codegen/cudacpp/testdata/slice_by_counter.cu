// slice_by_counter

struct Run {
  unsigned scalar0;
  int scalar1;
};

extern "C" __global__ void __launch_bounds__(16, 32) k_slice_by_counter(
    const float *__restrict__ x,
    float *y,
    const Run *__restrict__ run,
    int repeat0,
    int repeat1) {
  const int counter1 = repeat1;
  const int local_x = int(threadIdx.x);
  const int scalar1 = run->scalar1;
  const int i = local_x;
  y[i] = x[int(unsigned(counter1) * 16u + unsigned(i))] * float(scalar1);
}
