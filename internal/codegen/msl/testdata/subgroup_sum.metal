// subgroup_sum
#include <metal_stdlib>
using namespace metal;

[[max_total_threads_per_threadgroup(64)]]
kernel void k_subgroup_sum(
    device const float *x [[buffer(0)]],
    device float *y [[buffer(1)]],
    uint local_number [[thread_index_in_threadgroup]],
    uint3 group_id [[threadgroup_position_in_grid]],
    uint simd_lane [[thread_index_in_simdgroup]]) {
  threadgroup float partial[64];
  const int group_x = int(group_id.x);
  const int lane = int(simd_lane);
  const int local_index = int(local_number);
  const float x0 = x[group_x * 64 + local_index];
  const float part = simd_sum(x0);
  partial[local_index] = (lane == 0 ? part : 0.0f);
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
