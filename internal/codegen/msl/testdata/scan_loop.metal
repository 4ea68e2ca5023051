// scan_loop
#include <metal_stdlib>
using namespace metal;

[[max_total_threads_per_threadgroup(16)]]
kernel void k_scan_loop(
    device const float *x [[buffer(0)]],
    device float *y [[buffer(1)]],
    uint local_number [[thread_index_in_threadgroup]],
    uint3 group_id [[threadgroup_position_in_grid]]) {
  const int group_x = int(group_id.x);
  const int local_index = int(local_number);
  const int row = group_x * 16 + local_index;
  if (row < 40) {
    float sum = 0.0f;
    for (int j = 0; j < 9; j++) {
      sum += x[int(uint(row) * 9u + uint(j))];
      y[int(uint(row) * 9u + uint(j))] = sum;
    }
  }
}
