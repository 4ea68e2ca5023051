// counted_state
#include <metal_stdlib>
using namespace metal;

[[max_total_threads_per_threadgroup(32)]]
kernel void k_counted_state(
    device const int *x [[buffer(0)]],
    device atomic_int *state [[buffer(1)]],
    uint3 local_id [[thread_position_in_threadgroup]],
    uint3 group_id [[threadgroup_position_in_grid]]) {
  const int group_x = int(group_id.x);
  const int local_x = int(local_id.x);
  const int i = group_x * 32 + local_x;
  if (atomic_load_explicit(&state[1], memory_order_relaxed) < 0 && x[i] > 50) {
    atomic_fetch_add_explicit(&state[0], 1, memory_order_relaxed);
  }
}
