// histogram
#include <metal_stdlib>
using namespace metal;

[[max_total_threads_per_threadgroup(64)]]
kernel void k_histogram(
    device const int *x [[buffer(0)]],
    device atomic_uint *count [[buffer(1)]],
    device float *mark [[buffer(2)]],
    uint3 local_id [[thread_position_in_threadgroup]],
    uint3 group_id [[threadgroup_position_in_grid]]) {
  const int group_x = int(group_id.x);
  const int local_x = int(local_id.x);
  const int i = group_x * 64 + local_x;
  const uint before = atomic_fetch_add_explicit(&count[x[i]], 1u, memory_order_relaxed);
  if (before == 0u) {
    mark[x[i]] = 1.0f;
  }
}
