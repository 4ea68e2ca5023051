// relu_vec4
#include <metal_stdlib>
using namespace metal;

[[max_total_threads_per_threadgroup(64)]]
kernel void k_relu_vec4(
    device const float4 *x [[buffer(0)]],
    device float4 *y [[buffer(1)]],
    uint3 local_id [[thread_position_in_threadgroup]],
    uint3 group_id [[threadgroup_position_in_grid]]) {
  const int group_x = int(group_id.x);
  const int local_x = int(local_id.x);
  const int i = group_x * 64 + local_x;
  const float4 v0 = x[i];
  y[i] = float4((v0.x > 0.0f ? v0.x : 0.0f), (v0.y > 0.0f ? v0.y : 0.0f), (v0.z > 0.0f ? v0.z : 0.0f), (v0.w > 0.0f ? v0.w : 0.0f));
}
