// bfloat_scaled_vec4
#include <metal_stdlib>
using namespace metal;

[[max_total_threads_per_threadgroup(32)]]
kernel void k_bfloat_scaled_vec4(
    device const bfloat4 *x [[buffer(0)]],
    device bfloat4 *y [[buffer(1)]],
    uint3 local_id [[thread_position_in_threadgroup]],
    uint3 group_id [[threadgroup_position_in_grid]]) {
  const int group_x = int(group_id.x);
  const int local_x = int(local_id.x);
  const int i = group_x * 32 + local_x;
  const bfloat4 v0 = x[i];
  y[i] = bfloat4(bfloat(float(v0.x) * 1.1f), bfloat(float(v0.y) * 1.1f), bfloat(float(v0.z) * 1.1f), bfloat(float(v0.w) * 1.1f));
}
