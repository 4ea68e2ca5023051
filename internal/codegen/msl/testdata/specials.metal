// specials
#include <metal_stdlib>
using namespace metal;

[[max_total_threads_per_threadgroup(4)]]
kernel void k_specials(
    device const float *x [[buffer(0)]],
    device float *picked [[buffer(1)]],
    device float *masked [[buffer(2)]],
    device float *smallest [[buffer(3)]],
    uint3 local_id [[thread_position_in_threadgroup]]) {
  const int local_x = int(local_id.x);
  const int i = local_x;
  picked[i] = (i == 1 ? as_type<float>(0xff800000u) : (i == 2 ? as_type<float>(0x7fc00000u) : as_type<float>(0x7f800000u)));
  const float t0 = x[i];
  masked[i] = (t0 == 0.0f ? 0.0f : t0 * as_type<float>(0x7f800000u));
  smallest[i] = (x[i] > 0.0f ? 3.4028235e+38f : 1.1754944e-38f);
}
