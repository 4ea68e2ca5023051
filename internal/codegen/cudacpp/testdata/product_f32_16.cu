// product_f32_16

static __device__ __forceinline__ void copy_async_16(void *to, const void *from, bool valid = true) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(valid ? 16 : 0) : "memory");
}

static __device__ __forceinline__ unsigned long long tile_of(const void *array, int piece, int panel) {
  const unsigned low = ((unsigned)__cvta_generic_to_shared(array) >> 4) + ((unsigned)panel >> 4 << 16) + (unsigned)piece;
  return (unsigned long long)low | 64ull << 32 | 1ull << 62;
}

static __device__ __forceinline__ void wgmma_tf32_16(unsigned long long a, unsigned long long b, float &d0, float &d1, float &d2, float &d3, float &d4, float &d5, float &d6, float &d7) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n16k8.f32.tf32.tf32 {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, 1, 1, 1;"
               : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3), "+f"(d4), "+f"(d5), "+f"(d6), "+f"(d7)
               : "l"(a), "l"(b));
}

extern "C" __global__ void __launch_bounds__(128, 1) k_product_f32_16(
    const float *__restrict__ left,
    const float *__restrict__ right,
    float *result) {
  __shared__ __align__(1024) float left_tile[2048];
  __shared__ __align__(1024) float right_tile[512];
  const int local_x = int(threadIdx.x);
  const int t0 = local_x / 8;
  const int t1 = t0 * 32;
  const int t2 = local_x % 8 * 4;
  copy_async_16(&left_tile[t1 + (((t2 >> 2) ^ (t0 & 7)) * 4 + (t2 & 3))], &left[t1 + t2]);
  const int t3 = local_x + 128;
  const int t4 = t3 / 8;
  const int t5 = t4 * 32;
  const int t6 = t3 % 8 * 4;
  copy_async_16(&left_tile[t5 + (((t6 >> 2) ^ (t4 & 7)) * 4 + (t6 & 3))], &left[t5 + t6]);
  const int t7 = local_x + 256;
  const int t8 = t7 / 8;
  const int t9 = t8 * 32;
  const int t10 = t7 % 8 * 4;
  copy_async_16(&left_tile[t9 + (((t10 >> 2) ^ (t8 & 7)) * 4 + (t10 & 3))], &left[t9 + t10]);
  const int t11 = local_x + 384;
  const int t12 = t11 / 8;
  const int t13 = t12 * 32;
  const int t14 = t11 % 8 * 4;
  copy_async_16(&left_tile[t13 + (((t14 >> 2) ^ (t12 & 7)) * 4 + (t14 & 3))], &left[t13 + t14]);
  const int t15 = local_x / 8;
  const int t16 = t15 * 32;
  const int t17 = local_x % 8 * 4;
  copy_async_16(&right_tile[t16 + (((t17 >> 2) ^ (t15 & 7)) * 4 + (t17 & 3))], &right[t16 + t17]);
  asm volatile("cp.async.commit_group;" ::: "memory");
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float sum0 = 0.0f;
  float sum1 = 0.0f;
  float sum2 = 0.0f;
  float sum3 = 0.0f;
  float sum4 = 0.0f;
  float sum5 = 0.0f;
  float sum6 = 0.0f;
  float sum7 = 0.0f;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  wgmma_tf32_16(tile_of(left_tile, 0, 16), tile_of(right_tile, 0, 16),
    sum0, sum1, sum2, sum3, sum4, sum5, sum6, sum7);
  wgmma_tf32_16(tile_of(left_tile, 2, 16), tile_of(right_tile, 2, 16),
    sum0, sum1, sum2, sum3, sum4, sum5, sum6, sum7);
  wgmma_tf32_16(tile_of(left_tile, 4, 16), tile_of(right_tile, 4, 16),
    sum0, sum1, sum2, sum3, sum4, sum5, sum6, sum7);
  wgmma_tf32_16(tile_of(left_tile, 6, 16), tile_of(right_tile, 6, 16),
    sum0, sum1, sum2, sum3, sum4, sum5, sum6, sum7);
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(sum0), "+f"(sum1), "+f"(sum2), "+f"(sum3), "+f"(sum4), "+f"(sum5), "+f"(sum6), "+f"(sum7) :: "memory");
  const int t18 = local_x & 31;
  result[((local_x >> 5) * 16 + (t18 >> 2)) * 16 + (t18 & 3) * 2] = sum0;
  const int t19 = local_x & 31;
  result[((local_x >> 5) * 16 + (t19 >> 2)) * 16 + ((t19 & 3) * 2 + 1)] = sum1;
  const int t20 = local_x & 31;
  result[((local_x >> 5) * 16 + (t20 >> 2) + 8) * 16 + (t20 & 3) * 2] = sum2;
  const int t21 = local_x & 31;
  result[((local_x >> 5) * 16 + (t21 >> 2) + 8) * 16 + ((t21 & 3) * 2 + 1)] = sum3;
  const int t22 = local_x & 31;
  result[((local_x >> 5) * 16 + (t22 >> 2)) * 16 + ((t22 & 3) * 2 + 8)] = sum4;
  const int t23 = local_x & 31;
  result[((local_x >> 5) * 16 + (t23 >> 2)) * 16 + ((t23 & 3) * 2 + 9)] = sum5;
  const int t24 = local_x & 31;
  result[((local_x >> 5) * 16 + (t24 >> 2) + 8) * 16 + ((t24 & 3) * 2 + 8)] = sum6;
  const int t25 = local_x & 31;
  result[((local_x >> 5) * 16 + (t25 >> 2) + 8) * 16 + ((t25 & 3) * 2 + 9)] = sum7;
}
