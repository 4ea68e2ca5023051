// matmul_64
#include <metal_stdlib>
using namespace metal;

[[max_total_threads_per_threadgroup(256)]]
kernel void k_matmul_64(
    device const float4 *a [[buffer(0)]],
    device const float4 *b [[buffer(1)]],
    device float4 *c [[buffer(2)]],
    uint3 local_id [[thread_position_in_threadgroup]],
    uint3 group_id [[threadgroup_position_in_grid]]) {
  threadgroup float4 tile_a[256];
  threadgroup float4 tile_b[256];
  const int group_x = int(group_id.x);
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
  float acc_8 = 0.0f;
  float acc_9 = 0.0f;
  float acc_10 = 0.0f;
  float acc_11 = 0.0f;
  float acc_12 = 0.0f;
  float acc_13 = 0.0f;
  float acc_14 = 0.0f;
  float acc_15 = 0.0f;
  for (int tile = 0; tile < 4; tile++) {
    const int t0 = local_y * 16 + local_x;
    const float4 v0 = a[int(uint(min(t0 / 4, 63) * 16) + uint(tile) * 4u + uint(t0 % 4))];
    tile_a[local_y * 16 + local_x] = v0;
    const int t1 = local_y * 16 + local_x;
    const float4 v1 = b[int((uint(tile) * 16u + uint(t1 / 16)) * 32u + uint(group_x * 16) + uint(t1 % 16))];
    tile_b[local_y * 16 + local_x] = v1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int q = 0; q < 4; q++) {
      const float4 v2 = tile_b[int(uint(q) * 4u * 16u + uint(local_x))];
      const float4 v3 = tile_b[int((uint(q) * 4u + 1u) * 16u + uint(local_x))];
      const float4 v4 = tile_b[int((uint(q) * 4u + 2u) * 16u + uint(local_x))];
      const float4 v5 = tile_b[int((uint(q) * 4u + 3u) * 16u + uint(local_x))];
      const float4 v6 = tile_a[int(uint(local_y * 4 * 4) + uint(q))];
      acc_0 = acc_0 + v6.x * v2.x + v6.y * v3.x + v6.z * v4.x + v6.w * v5.x;
      acc_1 = acc_1 + v6.x * v2.y + v6.y * v3.y + v6.z * v4.y + v6.w * v5.y;
      acc_2 = acc_2 + v6.x * v2.z + v6.y * v3.z + v6.z * v4.z + v6.w * v5.z;
      acc_3 = acc_3 + v6.x * v2.w + v6.y * v3.w + v6.z * v4.w + v6.w * v5.w;
      const float4 v7 = tile_a[int(uint((local_y * 4 + 1) * 4) + uint(q))];
      acc_4 = acc_4 + v7.x * v2.x + v7.y * v3.x + v7.z * v4.x + v7.w * v5.x;
      acc_5 = acc_5 + v7.x * v2.y + v7.y * v3.y + v7.z * v4.y + v7.w * v5.y;
      acc_6 = acc_6 + v7.x * v2.z + v7.y * v3.z + v7.z * v4.z + v7.w * v5.z;
      acc_7 = acc_7 + v7.x * v2.w + v7.y * v3.w + v7.z * v4.w + v7.w * v5.w;
      const float4 v8 = tile_a[int(uint((local_y * 4 + 2) * 4) + uint(q))];
      acc_8 = acc_8 + v8.x * v2.x + v8.y * v3.x + v8.z * v4.x + v8.w * v5.x;
      acc_9 = acc_9 + v8.x * v2.y + v8.y * v3.y + v8.z * v4.y + v8.w * v5.y;
      acc_10 = acc_10 + v8.x * v2.z + v8.y * v3.z + v8.z * v4.z + v8.w * v5.z;
      acc_11 = acc_11 + v8.x * v2.w + v8.y * v3.w + v8.z * v4.w + v8.w * v5.w;
      const float4 v9 = tile_a[int(uint((local_y * 4 + 3) * 4) + uint(q))];
      acc_12 = acc_12 + v9.x * v2.x + v9.y * v3.x + v9.z * v4.x + v9.w * v5.x;
      acc_13 = acc_13 + v9.x * v2.y + v9.y * v3.y + v9.z * v4.y + v9.w * v5.y;
      acc_14 = acc_14 + v9.x * v2.z + v9.y * v3.z + v9.z * v4.z + v9.w * v5.z;
      acc_15 = acc_15 + v9.x * v2.w + v9.y * v3.w + v9.z * v4.w + v9.w * v5.w;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  const int row_0 = local_y * 4;
  if (row_0 < 64) {
    c[int(uint(row_0) * 32u + uint(group_x * 16) + uint(local_x))] = float4(acc_0, acc_1, acc_2, acc_3);
  }
  const int row_1 = local_y * 4 + 1;
  if (row_1 < 64) {
    c[int(uint(row_1) * 32u + uint(group_x * 16) + uint(local_x))] = float4(acc_4, acc_5, acc_6, acc_7);
  }
  const int row_2 = local_y * 4 + 2;
  if (row_2 < 64) {
    c[int(uint(row_2) * 32u + uint(group_x * 16) + uint(local_x))] = float4(acc_8, acc_9, acc_10, acc_11);
  }
  const int row_3 = local_y * 4 + 3;
  if (row_3 < 64) {
    c[int(uint(row_3) * 32u + uint(group_x * 16) + uint(local_x))] = float4(acc_12, acc_13, acc_14, acc_15);
  }
}
