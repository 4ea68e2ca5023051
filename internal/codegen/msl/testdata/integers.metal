// integers
#include <metal_stdlib>
using namespace metal;

[[max_total_threads_per_threadgroup(10)]]
kernel void k_integers(
    device const int *a [[buffer(0)]],
    device const int *b [[buffer(1)]],
    device int *quot [[buffer(2)]],
    device int *rest [[buffer(3)]],
    device int *floor_ [[buffer(4)]],
    device int *modulo [[buffer(5)]],
    device int *shift [[buffer(6)]],
    device int *mixed [[buffer(7)]],
    uint3 local_id [[thread_position_in_threadgroup]]) {
  const int local_x = int(local_id.x);
  const int i = local_x;
  const int t0 = a[i];
  const int t1 = b[i];
  quot[i] = t0 / (t1 == 0 || (t1 == -1 && t0 == (-2147483647 - 1)) ? 1 : t1);
  const int t2 = a[i];
  const int t3 = b[i];
  rest[i] = t2 % (t3 == 0 || (t3 == -1 && t2 == (-2147483647 - 1)) ? 1 : t3);
  const int t4 = a[i];
  const int t5 = b[i];
  const int t6 = (t5 == 0 || (t5 == -1 && t4 == (-2147483647 - 1)) ? 1 : t5);
  const int t7 = t4 % t6;
  floor_[i] = int(uint(t4 / t6) - uint(int(t7 != 0 && (t7 < 0) != (t6 < 0))));
  const int t8 = a[i] % 5;
  modulo[i] = t8 + (t8 != 0 && (t8 < 0) != false ? 5 : 0);
  const int t9 = a[i];
  shift[i] = int(uint(t9) << 3u) ^ (t9 >> ((b[i] & 31) & 31));
  const int t10 = a[i];
  mixed[i] = int(uint(popcount(t10)) + uint(~max(t10, (-2147483647 - 1))));
}
