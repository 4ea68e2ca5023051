// conversions
#include <metal_stdlib>
using namespace metal;

static int convert_f32_i32(float x) {
  const bool t0 = (as_type<uint>(x) & 2147483647u) > 2139095040u;
  const bool t1 = x >= 2.1474836e+09f;
  const bool t2 = x <= -2.1474836e+09f;
  const int t3 = (t1 ? 2147483647 : (t2 ? (-2147483647 - 1) : int(as_type<float>((t2 || t1 || t0 ? 0u : as_type<uint>(x))))));
  return (t0 ? 0 : t3);
}

static uint convert_f32_u32(float x) {
  const bool t0 = (as_type<uint>(x) & 2147483647u) > 2139095040u;
  const bool t1 = x >= 4.2949673e+09f;
  const bool t2 = x <= 0.0f;
  const uint t3 = (t1 ? 4294967295u : (t2 ? 0u : uint(as_type<float>((t2 || t1 || t0 ? 0u : as_type<uint>(x))))));
  return (t0 ? 0u : t3);
}

[[max_total_threads_per_threadgroup(9)]]
kernel void k_conversions(
    device const float *x [[buffer(0)]],
    device int *to_i32_ [[buffer(1)]],
    device uint *to_u32_ [[buffer(2)]],
    device float *back [[buffer(3)]],
    device uint *bits [[buffer(4)]],
    uint3 local_id [[thread_position_in_threadgroup]]) {
  const int local_x = int(local_id.x);
  const int i = local_x;
  to_i32_[i] = convert_f32_i32(x[i]);
  to_u32_[i] = convert_f32_u32(x[i]);
  const float t0 = x[i];
  back[i] = float(convert_f32_i32(t0)) + float(convert_f32_u32(t0));
  bits[i] = as_type<uint>(x[i]);
}
