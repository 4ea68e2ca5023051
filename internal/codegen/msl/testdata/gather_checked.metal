// gather_checked
#include <metal_stdlib>
using namespace metal;

[[max_total_threads_per_threadgroup(32)]]
kernel void k_gather_checked(
    device const int *x [[buffer(0)]],
    device const float *table [[buffer(1)]],
    device float *y [[buffer(2)]],
    device atomic_uint *status [[buffer(3)]],
    uint3 local_id [[thread_position_in_threadgroup]],
    uint3 group_id [[threadgroup_position_in_grid]]) {
  const int group_x = int(group_id.x);
  const int local_x = int(local_id.x);
  const int i = group_x * 32 + local_x;
  if (i < 100) {
    const int k = x[i];
    const bool t0 = k >= 0 && k < 10;
    if (!t0) {
      atomic_fetch_max_explicit(&status[0], 7u, memory_order_relaxed);
    }
    y[i] = (t0 ? table[min(max(k, 0), 9)] : 0.0f);
  }
}
