// product_f16_8

static __device__ __forceinline__ void copy_async_16(void *to, const void *from, bool valid = true) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(valid ? 16 : 0) : "memory");
}

static __device__ __forceinline__ unsigned long long tile_of(const void *array, int piece, int panel) {
  const unsigned low = ((unsigned)__cvta_generic_to_shared(array) >> 4) + ((unsigned)panel >> 4 << 16) + (unsigned)piece;
  return (unsigned long long)low | 64ull << 32 | 1ull << 62;
}

static __device__ __forceinline__ void wgmma_f16_8_00(unsigned long long a, unsigned long long b, float &d0, float &d1, float &d2, float &d3) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
               : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
               : "l"(a), "l"(b));
}

extern "C" __global__ void __launch_bounds__(128, 1) k_product_f16_8(
    const unsigned short *__restrict__ left,
    const unsigned short *__restrict__ right,
    float *result) {
  __shared__ __align__(1024) unsigned short left_tile[4096];
  __shared__ __align__(1024) unsigned short right_tile[512];
  const int local_x = int(threadIdx.x);
  const int t0 = local_x / 8;
  const int t1 = t0 * 64;
  const int t2 = local_x % 8 * 8;
  copy_async_16(&left_tile[t1 + (((t2 >> 3) ^ (t0 & 7)) * 8 + (t2 & 7))], &left[t1 + t2]);
  const int t3 = local_x + 128;
  const int t4 = t3 / 8;
  const int t5 = t4 * 64;
  const int t6 = t3 % 8 * 8;
  copy_async_16(&left_tile[t5 + (((t6 >> 3) ^ (t4 & 7)) * 8 + (t6 & 7))], &left[t5 + t6]);
  const int t7 = local_x + 256;
  const int t8 = t7 / 8;
  const int t9 = t8 * 64;
  const int t10 = t7 % 8 * 8;
  copy_async_16(&left_tile[t9 + (((t10 >> 3) ^ (t8 & 7)) * 8 + (t10 & 7))], &left[t9 + t10]);
  const int t11 = local_x + 384;
  const int t12 = t11 / 8;
  const int t13 = t12 * 64;
  const int t14 = t11 % 8 * 8;
  copy_async_16(&left_tile[t13 + (((t14 >> 3) ^ (t12 & 7)) * 8 + (t14 & 7))], &left[t13 + t14]);
  if (local_x < 64) {
    const int t15 = local_x / 8;
    const int t16 = t15 * 64;
    const int t17 = local_x % 8 * 8;
    copy_async_16(&right_tile[t16 + (((t17 >> 3) ^ (t15 & 7)) * 8 + (t17 & 7))], &right[t16 + t17]);
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float sum0 = 0.0f;
  float sum1 = 0.0f;
  float sum2 = 0.0f;
  float sum3 = 0.0f;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  wgmma_f16_8_00(tile_of(left_tile, 0, 16), tile_of(right_tile, 0, 16),
    sum0, sum1, sum2, sum3);
  wgmma_f16_8_00(tile_of(left_tile, 2, 16), tile_of(right_tile, 2, 16),
    sum0, sum1, sum2, sum3);
  wgmma_f16_8_00(tile_of(left_tile, 4, 16), tile_of(right_tile, 4, 16),
    sum0, sum1, sum2, sum3);
  wgmma_f16_8_00(tile_of(left_tile, 6, 16), tile_of(right_tile, 6, 16),
    sum0, sum1, sum2, sum3);
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(sum0), "+f"(sum1), "+f"(sum2), "+f"(sum3) :: "memory");
  const int t18 = local_x & 31;
  result[((local_x >> 5) * 16 + (t18 >> 2)) * 8 + (t18 & 3) * 2] = sum0;
  const int t19 = local_x & 31;
  result[((local_x >> 5) * 16 + (t19 >> 2)) * 8 + ((t19 & 3) * 2 + 1)] = sum1;
  const int t20 = local_x & 31;
  result[((local_x >> 5) * 16 + (t20 >> 2) + 8) * 8 + (t20 & 3) * 2] = sum2;
  const int t21 = local_x & 31;
  result[((local_x >> 5) * 16 + (t21 >> 2) + 8) * 8 + ((t21 & 3) * 2 + 1)] = sum3;
}
