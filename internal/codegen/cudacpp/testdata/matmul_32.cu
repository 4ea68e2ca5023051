// matmul_32

extern "C" __global__ void __launch_bounds__(128, 4) k_matmul_32(
    const float4 *__restrict__ a,
    const float4 *__restrict__ b,
    float4 *c) {
  __shared__ float4 tile_a[128];
  __shared__ float4 tile_b[128];
  const int group_x = int(blockIdx.x);
  const int group_y = int(blockIdx.y);
  const int local_x = int(threadIdx.x);
  const int local_y = int(threadIdx.y);
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
    const int t1 = int(unsigned(min(group_y * 32 + t0 / 4, 49) * 12) + unsigned(tile) * 4u + unsigned(t0 % 4));
    const float4 v0 = a[t1];
    tile_a[local_y * 8 + local_x] = v0;
    const int t2 = local_y * 8 + local_x;
    const int t3 = int((unsigned(tile) * 16u + unsigned(t2 / 8)) * 16u + unsigned(group_x * 8) + unsigned(t2 % 8));
    const float4 v1 = b[t3];
    tile_b[local_y * 8 + local_x] = v1;
    __syncthreads();
    for (int q = 0; q < 4; q++) {
      const float4 v2 = tile_b[int(unsigned(q) * 4u * 8u + unsigned(local_x))];
      const float4 v3 = tile_b[int((unsigned(q) * 4u + 1u) * 8u + unsigned(local_x))];
      const float4 v4 = tile_b[int((unsigned(q) * 4u + 2u) * 8u + unsigned(local_x))];
      const float4 v5 = tile_b[int((unsigned(q) * 4u + 3u) * 8u + unsigned(local_x))];
      const float4 v6 = tile_a[int(unsigned(local_y * 2 * 4) + unsigned(q))];
      acc_0 = acc_0 + v6.x * v2.x + v6.y * v3.x + v6.z * v4.x + v6.w * v5.x;
      acc_1 = acc_1 + v6.x * v2.y + v6.y * v3.y + v6.z * v4.y + v6.w * v5.y;
      acc_2 = acc_2 + v6.x * v2.z + v6.y * v3.z + v6.z * v4.z + v6.w * v5.z;
      acc_3 = acc_3 + v6.x * v2.w + v6.y * v3.w + v6.z * v4.w + v6.w * v5.w;
      const float4 v7 = tile_a[int(unsigned((local_y * 2 + 1) * 4) + unsigned(q))];
      acc_4 = acc_4 + v7.x * v2.x + v7.y * v3.x + v7.z * v4.x + v7.w * v5.x;
      acc_5 = acc_5 + v7.x * v2.y + v7.y * v3.y + v7.z * v4.y + v7.w * v5.y;
      acc_6 = acc_6 + v7.x * v2.z + v7.y * v3.z + v7.z * v4.z + v7.w * v5.z;
      acc_7 = acc_7 + v7.x * v2.w + v7.y * v3.w + v7.z * v4.w + v7.w * v5.w;
    }
    __syncthreads();
  }
  const int row_0 = group_y * 32 + local_y * 2;
  if (row_0 < 50) {
    c[int(unsigned(row_0) * 16u + unsigned(group_x * 8) + unsigned(local_x))] = make_float4(acc_0, acc_1, acc_2, acc_3);
  }
  const int row_1 = group_y * 32 + (local_y * 2 + 1);
  if (row_1 < 50) {
    c[int(unsigned(row_1) * 16u + unsigned(group_x * 8) + unsigned(local_x))] = make_float4(acc_4, acc_5, acc_6, acc_7);
  }
}
