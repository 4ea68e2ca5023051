// threefry
#include <metal_stdlib>
using namespace metal;

[[max_total_threads_per_threadgroup(32)]]
kernel void k_threefry(
    device uint *y0 [[buffer(0)]],
    device uint *y1 [[buffer(1)]],
    uint3 local_id [[thread_position_in_threadgroup]]) {
  const int local_x = int(local_id.x);
  const int i = local_x;
  const uint t0 = uint(i) + 2654435769u;
  const uint t1 = 4013372358u ^ t0;
  const uint t2 = t0 + t1;
  const uint t3 = ((t1 << 15u) | (t1 >> 17u)) ^ t2;
  const uint t4 = t2 + t3;
  y0[i] = t4 + (((t3 << 26u) | (t3 >> 6u)) ^ t4);
  const uint t5 = uint(i) + 2654435769u;
  const uint t6 = 4013372358u ^ t5;
  const uint t7 = t5 + t6;
  const uint t8 = ((t6 << 15u) | (t6 >> 17u)) ^ t7;
  const uint t9 = t7 + t8;
  const uint t10 = ((t8 << 26u) | (t8 >> 6u)) ^ t9;
  y1[i] = ((t10 << 6u) | (t10 >> 26u)) ^ (t9 + t10);
}
