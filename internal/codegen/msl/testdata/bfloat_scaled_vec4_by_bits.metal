// bfloat_scaled_vec4
#include <metal_stdlib>
using namespace metal;

static float bf16_to_f32(ushort x) {
  return as_type<float>(uint(x) << 16);
}

static ushort f32_to_bf16(float x) {
  const uint bits = as_type<uint>(x);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return ushort(is_nan ? (bits >> 16) | 64u : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

[[max_total_threads_per_threadgroup(32)]]
kernel void k_bfloat_scaled_vec4(
    device const ushort4 *x [[buffer(0)]],
    device ushort4 *y [[buffer(1)]],
    uint3 local_id [[thread_position_in_threadgroup]],
    uint3 group_id [[threadgroup_position_in_grid]]) {
  const int group_x = int(group_id.x);
  const int local_x = int(local_id.x);
  const int i = group_x * 32 + local_x;
  const ushort4 v0 = x[i];
  y[i] = ushort4(f32_to_bf16(bf16_to_f32(v0.x) * 1.1f), f32_to_bf16(bf16_to_f32(v0.y) * 1.1f), f32_to_bf16(bf16_to_f32(v0.z) * 1.1f), f32_to_bf16(bf16_to_f32(v0.w) * 1.1f));
}
