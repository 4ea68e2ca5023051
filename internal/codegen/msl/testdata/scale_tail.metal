// scale_tail
#include <metal_stdlib>
using namespace metal;

struct Run {
  float scalar0;
};

[[max_total_threads_per_threadgroup(64)]]
kernel void k_scale_tail(
    device const float *x [[buffer(0)]],
    device float *y [[buffer(1)]],
    constant Run &run [[buffer(2)]],
    uint3 local_id [[thread_position_in_threadgroup]],
    uint3 group_id [[threadgroup_position_in_grid]]) {
  const int group_x = int(group_id.x);
  const int local_x = int(local_id.x);
  const float scalar0 = run.scalar0;
  const int i = group_x * 64 + local_x;
  if (i < 1000) {
    y[i] = x[i] * scalar0 + 0.5f;
  }
}
