// matmul_32
#include <metal_stdlib>
using namespace metal;

[[max_total_threads_per_threadgroup(128)]]
kernel void k_matmul_32(
    device const float4 *a [[buffer(0)]],
    device const float4 *b [[buffer(1)]],
    device float4 *c [[buffer(2)]],
    uint3 local_id [[thread_position_in_threadgroup]],
    uint3 group_id [[threadgroup_position_in_grid]]) {
  threadgroup float4 tile_a[128];
  threadgroup float4 tile_b[128];
  const int group_x = int(group_id.x);
  const int group_y = int(group_id.y);
  const int local_x = int(local_id.x);
  const int local_y = int(local_id.y);
  float acc_0 = 0.0f;
  float acc_1 = 0.0f;
  float acc_2 = 0.0f;
  float acc_3 = 0.0f;
  float acc_4 = 0.0f;
  float acc_5 = 0.0f;
  float acc_6 = 0.0f;
  float acc_7 = 0.0f;
  for (int tile = 0; tile < 3; tile++) {
    const int t0 = local_y * 8 + local_x;
    const float4 v0 = a[int(uint(min(group_y * 32 + t0 / 4, 49) * 12) + uint(tile) * 4u + uint(t0 % 4))];
    tile_a[local_y * 8 + local_x] = v0;
    const int t1 = local_y * 8 + local_x;
    const float4 v1 = b[int((uint(tile) * 16u + uint(t1 / 8)) * 16u + uint(group_x * 8) + uint(t1 % 8))];
    tile_b[local_y * 8 + local_x] = v1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int q = 0; q < 4; q++) {
      const float4 v2 = tile_b[int(uint(q) * 4u * 8u + uint(local_x))];
      const float4 v3 = tile_b[int((uint(q) * 4u + 1u) * 8u + uint(local_x))];
      const float4 v4 = tile_b[int((uint(q) * 4u + 2u) * 8u + uint(local_x))];
      const float4 v5 = tile_b[int((uint(q) * 4u + 3u) * 8u + uint(local_x))];
      const float4 v6 = tile_a[int(uint(local_y * 2 * 4) + uint(q))];
      acc_0 = acc_0 + v6.x * v2.x + v6.y * v3.x + v6.z * v4.x + v6.w * v5.x;
      acc_1 = acc_1 + v6.x * v2.y + v6.y * v3.y + v6.z * v4.y + v6.w * v5.y;
      acc_2 = acc_2 + v6.x * v2.z + v6.y * v3.z + v6.z * v4.z + v6.w * v5.z;
      acc_3 = acc_3 + v6.x * v2.w + v6.y * v3.w + v6.z * v4.w + v6.w * v5.w;
      const float4 v7 = tile_a[int(uint((local_y * 2 + 1) * 4) + uint(q))];
      acc_4 = acc_4 + v7.x * v2.x + v7.y * v3.x + v7.z * v4.x + v7.w * v5.x;
      acc_5 = acc_5 + v7.x * v2.y + v7.y * v3.y + v7.z * v4.y + v7.w * v5.y;
      acc_6 = acc_6 + v7.x * v2.z + v7.y * v3.z + v7.z * v4.z + v7.w * v5.z;
      acc_7 = acc_7 + v7.x * v2.w + v7.y * v3.w + v7.z * v4.w + v7.w * v5.w;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  const int row_0 = group_y * 32 + local_y * 2;
  if (row_0 < 50) {
    c[int(uint(row_0) * 16u + uint(group_x * 8) + uint(local_x))] = float4(acc_0, acc_1, acc_2, acc_3);
  }
  const int row_1 = group_y * 32 + (local_y * 2 + 1);
  if (row_1 < 50) {
    c[int(uint(row_1) * 16u + uint(group_x * 8) + uint(local_x))] = float4(acc_4, acc_5, acc_6, acc_7);
  }
}
