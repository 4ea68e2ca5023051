// sum_tree
#include <metal_stdlib>
using namespace metal;

[[max_total_threads_per_threadgroup(128)]]
kernel void k_sum_tree(
    device const float *x [[buffer(0)]],
    device float *y [[buffer(1)]],
    uint local_number [[thread_index_in_threadgroup]],
    uint3 group_id [[threadgroup_position_in_grid]]) {
  threadgroup float partial[128];
  const int group_x = int(group_id.x);
  const int local_index = int(local_number);
  float sum = 0.0f;
  for (int j = local_index; j < 300; j += 128) {
    sum += x[int(uint(group_x * 300) + uint(j))];
  }
  partial[local_index] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (local_index < 64) {
    partial[local_index] = partial[local_index] + partial[local_index + 64];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (local_index < 32) {
    partial[local_index] = partial[local_index] + partial[local_index + 32];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (local_index < 16) {
    partial[local_index] = partial[local_index] + partial[local_index + 16];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (local_index < 8) {
    partial[local_index] = partial[local_index] + partial[local_index + 8];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (local_index < 4) {
    partial[local_index] = partial[local_index] + partial[local_index + 4];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (local_index < 2) {
    partial[local_index] = partial[local_index] + partial[local_index + 2];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (local_index < 1) {
    partial[local_index] = partial[local_index] + partial[local_index + 1];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (local_index == 0) {
    y[group_x] = partial[0];
  }
}
