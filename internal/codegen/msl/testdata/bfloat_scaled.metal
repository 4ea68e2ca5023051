// bfloat_scaled
#include <metal_stdlib>
using namespace metal;

[[max_total_threads_per_threadgroup(32)]]
kernel void k_bfloat_scaled(
    device const bfloat *x [[buffer(0)]],
    device bfloat *y [[buffer(1)]],
    uint3 local_id [[thread_position_in_threadgroup]],
    uint3 group_id [[threadgroup_position_in_grid]]) {
  const int group_x = int(group_id.x);
  const int local_x = int(local_id.x);
  const int i = group_x * 32 + local_x;
  y[i] = bfloat(float(x[i]) * 1.1f);
}
