// wide_integers
#include <metal_stdlib>
using namespace metal;

[[max_total_threads_per_threadgroup(12)]]
kernel void k_wide_integers(
    device const long *x [[buffer(0)]],
    device ulong *mixed [[buffer(1)]],
    device int *short_word [[buffer(2)]],
    uint3 local_id [[thread_position_in_threadgroup]]) {
  const int local_x = int(local_id.x);
  const int i = local_x;
  const ulong t0 = ulong(x[i]) * 6364136223846793005ul;
  mixed[i] = (t0 ^ (t0 >> 33ul)) >> 40ul;
  const ulong t1 = ulong(x[i]) * 6364136223846793005ul;
  short_word[i] = int(t1 ^ (t1 >> 33ul)) / 7;
}
