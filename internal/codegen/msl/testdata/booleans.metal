// booleans
#include <metal_stdlib>
using namespace metal;

[[max_total_threads_per_threadgroup(16)]]
kernel void k_booleans(
    device const uint *p [[buffer(0)]],
    device const uint *q [[buffer(1)]],
    device uint *both [[buffer(2)]],
    device uint *differ [[buffer(3)]],
    uint3 local_id [[thread_position_in_threadgroup]]) {
  threadgroup uint all_q[16];
  uint mine[2];
  const int local_x = int(local_id.x);
  const int i = local_x;
  all_q[i] = uint(q[i] != 0u);
  mine[i % 2] = uint(p[i] != 0u);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const bool mine_p = mine[i % 2] != 0u;
  both[i] = uint(mine_p && !(q[i] != 0u));
  differ[i] = uint(mine_p != (all_q[int(uint(i) + 1u) % 16] != 0u));
}
