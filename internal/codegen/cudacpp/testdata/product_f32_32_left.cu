// product_f32_32_left

static __device__ __forceinline__ void copy_async_16(void *to, const void *from, bool valid = true) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(valid ? 16 : 0) : "memory");
}

static __device__ __forceinline__ unsigned long long tile_of(const void *array, int piece, int panel) {
  const unsigned low = ((unsigned)__cvta_generic_to_shared(array) >> 4) + ((unsigned)panel >> 4 << 16) + (unsigned)piece;
  return (unsigned long long)low | 64ull << 32 | 1ull << 62;
}

static __device__ __forceinline__ void wgmma_tf32_32_left(float a0, float a1, float a2, float a3, unsigned long long b, float &d0, float &d1, float &d2, float &d3, float &d4, float &d5, float &d6, float &d7, float &d8, float &d9, float &d10, float &d11, float &d12, float &d13, float &d14, float &d15) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n32k8.f32.tf32.tf32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, {%16, %17, %18, %19}, %20, 1, 1, 1;"
               : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3), "+f"(d4), "+f"(d5), "+f"(d6), "+f"(d7), "+f"(d8), "+f"(d9), "+f"(d10), "+f"(d11), "+f"(d12), "+f"(d13), "+f"(d14), "+f"(d15)
               : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)), "r"(__float_as_uint(a3)), "l"(b));
}

extern "C" __global__ void __launch_bounds__(128, 1) k_product_f32_32_left(
    const float *__restrict__ left,
    const float *__restrict__ right,
    float *result) {
  __shared__ __align__(16) float left_tile[2048];
  __shared__ __align__(1024) float right_tile[1024];
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
  const int t18 = local_x + 128;
  const int t19 = t18 / 8;
  const int t20 = t19 * 32;
  const int t21 = t18 % 8 * 4;
  copy_async_16(&right_tile[t20 + (((t21 >> 2) ^ (t19 & 7)) * 4 + (t21 & 3))], &right[t20 + t21]);
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
  float sum8 = 0.0f;
  float sum9 = 0.0f;
  float sum10 = 0.0f;
  float sum11 = 0.0f;
  float sum12 = 0.0f;
  float sum13 = 0.0f;
  float sum14 = 0.0f;
  float sum15 = 0.0f;
  const int t22 = local_x & 31;
  const int t23 = (local_x >> 5) * 16 + (t22 >> 2);
  const int t24 = t22 & 3;
  float left0_0 = left_tile[t23 * 32 + (((t24 >> 2) ^ (t23 & 7)) * 4 + (t24 & 3))];
  const int t25 = local_x & 31;
  const int t26 = (local_x >> 5) * 16 + (t25 >> 2) + 8;
  const int t27 = t25 & 3;
  float left0_1 = left_tile[t26 * 32 + (((t27 >> 2) ^ (t26 & 7)) * 4 + (t27 & 3))];
  const int t28 = local_x & 31;
  const int t29 = (local_x >> 5) * 16 + (t28 >> 2);
  const int t30 = (t28 & 3) + 4;
  float left0_2 = left_tile[t29 * 32 + (((t30 >> 2) ^ (t29 & 7)) * 4 + (t30 & 3))];
  const int t31 = local_x & 31;
  const int t32 = (local_x >> 5) * 16 + (t31 >> 2) + 8;
  const int t33 = (t31 & 3) + 4;
  float left0_3 = left_tile[t32 * 32 + (((t33 >> 2) ^ (t32 & 7)) * 4 + (t33 & 3))];
  const int t34 = local_x & 31;
  const int t35 = (local_x >> 5) * 16 + (t34 >> 2);
  const int t36 = (t34 & 3) + 8;
  float left8_0 = left_tile[t35 * 32 + (((t36 >> 2) ^ (t35 & 7)) * 4 + (t36 & 3))];
  const int t37 = local_x & 31;
  const int t38 = (local_x >> 5) * 16 + (t37 >> 2) + 8;
  const int t39 = (t37 & 3) + 8;
  float left8_1 = left_tile[t38 * 32 + (((t39 >> 2) ^ (t38 & 7)) * 4 + (t39 & 3))];
  const int t40 = local_x & 31;
  const int t41 = (local_x >> 5) * 16 + (t40 >> 2);
  const int t42 = (t40 & 3) + 12;
  float left8_2 = left_tile[t41 * 32 + (((t42 >> 2) ^ (t41 & 7)) * 4 + (t42 & 3))];
  const int t43 = local_x & 31;
  const int t44 = (local_x >> 5) * 16 + (t43 >> 2) + 8;
  const int t45 = (t43 & 3) + 12;
  float left8_3 = left_tile[t44 * 32 + (((t45 >> 2) ^ (t44 & 7)) * 4 + (t45 & 3))];
  const int t46 = local_x & 31;
  const int t47 = (local_x >> 5) * 16 + (t46 >> 2);
  const int t48 = (t46 & 3) + 16;
  float left16_0 = left_tile[t47 * 32 + (((t48 >> 2) ^ (t47 & 7)) * 4 + (t48 & 3))];
  const int t49 = local_x & 31;
  const int t50 = (local_x >> 5) * 16 + (t49 >> 2) + 8;
  const int t51 = (t49 & 3) + 16;
  float left16_1 = left_tile[t50 * 32 + (((t51 >> 2) ^ (t50 & 7)) * 4 + (t51 & 3))];
  const int t52 = local_x & 31;
  const int t53 = (local_x >> 5) * 16 + (t52 >> 2);
  const int t54 = (t52 & 3) + 20;
  float left16_2 = left_tile[t53 * 32 + (((t54 >> 2) ^ (t53 & 7)) * 4 + (t54 & 3))];
  const int t55 = local_x & 31;
  const int t56 = (local_x >> 5) * 16 + (t55 >> 2) + 8;
  const int t57 = (t55 & 3) + 20;
  float left16_3 = left_tile[t56 * 32 + (((t57 >> 2) ^ (t56 & 7)) * 4 + (t57 & 3))];
  const int t58 = local_x & 31;
  const int t59 = (local_x >> 5) * 16 + (t58 >> 2);
  const int t60 = (t58 & 3) + 24;
  float left24_0 = left_tile[t59 * 32 + (((t60 >> 2) ^ (t59 & 7)) * 4 + (t60 & 3))];
  const int t61 = local_x & 31;
  const int t62 = (local_x >> 5) * 16 + (t61 >> 2) + 8;
  const int t63 = (t61 & 3) + 24;
  float left24_1 = left_tile[t62 * 32 + (((t63 >> 2) ^ (t62 & 7)) * 4 + (t63 & 3))];
  const int t64 = local_x & 31;
  const int t65 = (local_x >> 5) * 16 + (t64 >> 2);
  const int t66 = (t64 & 3) + 28;
  float left24_2 = left_tile[t65 * 32 + (((t66 >> 2) ^ (t65 & 7)) * 4 + (t66 & 3))];
  const int t67 = local_x & 31;
  const int t68 = (local_x >> 5) * 16 + (t67 >> 2) + 8;
  const int t69 = (t67 & 3) + 28;
  float left24_3 = left_tile[t68 * 32 + (((t69 >> 2) ^ (t68 & 7)) * 4 + (t69 & 3))];
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  wgmma_tf32_32_left(left0_0, left0_1, left0_2, left0_3, tile_of(right_tile, 0, 16),
    sum0, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15);
  wgmma_tf32_32_left(left8_0, left8_1, left8_2, left8_3, tile_of(right_tile, 2, 16),
    sum0, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15);
  wgmma_tf32_32_left(left16_0, left16_1, left16_2, left16_3, tile_of(right_tile, 4, 16),
    sum0, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15);
  wgmma_tf32_32_left(left24_0, left24_1, left24_2, left24_3, tile_of(right_tile, 6, 16),
    sum0, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15);
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(sum0), "+f"(sum1), "+f"(sum2), "+f"(sum3), "+f"(sum4), "+f"(sum5), "+f"(sum6), "+f"(sum7), "+f"(sum8), "+f"(sum9), "+f"(sum10), "+f"(sum11), "+f"(sum12), "+f"(sum13), "+f"(sum14), "+f"(sum15) :: "memory");
  const int t70 = local_x & 31;
  result[((local_x >> 5) * 16 + (t70 >> 2)) * 32 + (t70 & 3) * 2] = sum0;
  const int t71 = local_x & 31;
  result[((local_x >> 5) * 16 + (t71 >> 2)) * 32 + ((t71 & 3) * 2 + 1)] = sum1;
  const int t72 = local_x & 31;
  result[((local_x >> 5) * 16 + (t72 >> 2) + 8) * 32 + (t72 & 3) * 2] = sum2;
  const int t73 = local_x & 31;
  result[((local_x >> 5) * 16 + (t73 >> 2) + 8) * 32 + ((t73 & 3) * 2 + 1)] = sum3;
  const int t74 = local_x & 31;
  result[((local_x >> 5) * 16 + (t74 >> 2)) * 32 + ((t74 & 3) * 2 + 8)] = sum4;
  const int t75 = local_x & 31;
  result[((local_x >> 5) * 16 + (t75 >> 2)) * 32 + ((t75 & 3) * 2 + 9)] = sum5;
  const int t76 = local_x & 31;
  result[((local_x >> 5) * 16 + (t76 >> 2) + 8) * 32 + ((t76 & 3) * 2 + 8)] = sum6;
  const int t77 = local_x & 31;
  result[((local_x >> 5) * 16 + (t77 >> 2) + 8) * 32 + ((t77 & 3) * 2 + 9)] = sum7;
  const int t78 = local_x & 31;
  result[((local_x >> 5) * 16 + (t78 >> 2)) * 32 + ((t78 & 3) * 2 + 16)] = sum8;
  const int t79 = local_x & 31;
  result[((local_x >> 5) * 16 + (t79 >> 2)) * 32 + ((t79 & 3) * 2 + 17)] = sum9;
  const int t80 = local_x & 31;
  result[((local_x >> 5) * 16 + (t80 >> 2) + 8) * 32 + ((t80 & 3) * 2 + 16)] = sum10;
  const int t81 = local_x & 31;
  result[((local_x >> 5) * 16 + (t81 >> 2) + 8) * 32 + ((t81 & 3) * 2 + 17)] = sum11;
  const int t82 = local_x & 31;
  result[((local_x >> 5) * 16 + (t82 >> 2)) * 32 + ((t82 & 3) * 2 + 24)] = sum12;
  const int t83 = local_x & 31;
  result[((local_x >> 5) * 16 + (t83 >> 2)) * 32 + ((t83 & 3) * 2 + 25)] = sum13;
  const int t84 = local_x & 31;
  result[((local_x >> 5) * 16 + (t84 >> 2) + 8) * 32 + ((t84 & 3) * 2 + 24)] = sum14;
  const int t85 = local_x & 31;
  result[((local_x >> 5) * 16 + (t85 >> 2) + 8) * 32 + ((t85 & 3) * 2 + 25)] = sum15;
}
