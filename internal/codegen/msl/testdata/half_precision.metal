// half_precision
#include <metal_stdlib>
using namespace metal;

[[max_total_threads_per_threadgroup(4)]]
kernel void k_half_precision(
    device const half4 *x [[buffer(0)]],
    device half4 *line [[buffer(1)]],
    device float *wide [[buffer(2)]],
    uint3 local_id [[thread_position_in_threadgroup]]) {
  const int local_x = int(local_id.x);
  const int i = local_x;
  const half4 v0 = x[i];
  line[i] = half4(v0.x * half(0.5f) - half(1.0f), v0.y * half(0.5f) - half(1.0f), v0.z * half(0.5f) - half(1.0f), v0.w * half(0.5f) - half(1.0f));
  wide[int(uint(i) * 4u)] = float(v0.x * half(0.5f) - half(1.0f)) / 3.0f;
  wide[int(uint(i) * 4u + 1u)] = float(v0.y * half(0.5f) - half(1.0f)) / 3.0f;
  wide[int(uint(i) * 4u + 2u)] = float(v0.z * half(0.5f) - half(1.0f)) / 3.0f;
  wide[int(uint(i) * 4u + 3u)] = float(v0.w * half(0.5f) - half(1.0f)) / 3.0f;
}
