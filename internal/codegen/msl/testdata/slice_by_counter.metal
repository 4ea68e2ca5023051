// slice_by_counter
#include <metal_stdlib>
using namespace metal;

struct Run {
  uint scalar0;
  int scalar1;
};

[[max_total_threads_per_threadgroup(16)]]
kernel void k_slice_by_counter(
    device const float *x [[buffer(0)]],
    device float *y [[buffer(1)]],
    constant Run &run [[buffer(2)]],
    constant int *repeat [[buffer(3)]],
    uint3 local_id [[thread_position_in_threadgroup]]) {
  const int counter1 = repeat[1];
  const int local_x = int(local_id.x);
  const int scalar1 = run.scalar1;
  const int i = local_x;
  y[i] = x[int(uint(counter1) * 16u + uint(i))] * float(scalar1);
}
