// product_f16_32_left

static __device__ __forceinline__ void copy_async_16(void *to, const void *from, bool valid = true) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(valid ? 16 : 0) : "memory");
}

template <class T, class S> static __device__ T as_bits(S from) {
  union { S from; T to; } u;
  u.from = from;
  return u.to;
}

static __device__ float f16_to_f32(unsigned short x) {
  float y;
#if __CUDA_ARCH__ >= 530
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
#else
  y = as_bits<_Float16>(x);
#endif
  return y;
}

static __device__ __forceinline__ unsigned pack_f16(float low, float high) {
  unsigned y;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}

static __device__ __forceinline__ unsigned long long tile_of(const void *array, int piece, int panel) {
  const unsigned low = ((unsigned)__cvta_generic_to_shared(array) >> 4) + ((unsigned)panel >> 4 << 16) + (unsigned)piece;
  return (unsigned long long)low | 64ull << 32 | 1ull << 62;
}

static __device__ __forceinline__ void wgmma_f16_32_left_00(unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned long long b, float &d0, float &d1, float &d2, float &d3, float &d4, float &d5, float &d6, float &d7, float &d8, float &d9, float &d10, float &d11, float &d12, float &d13, float &d14, float &d15) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, {%16, %17, %18, %19}, %20, 1, 1, 1, 0;"
               : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3), "+f"(d4), "+f"(d5), "+f"(d6), "+f"(d7), "+f"(d8), "+f"(d9), "+f"(d10), "+f"(d11), "+f"(d12), "+f"(d13), "+f"(d14), "+f"(d15)
               : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b));
}

extern "C" __global__ void __launch_bounds__(128, 1) k_product_f16_32_left(
    const unsigned short *__restrict__ left,
    const unsigned short *__restrict__ right,
    float *result) {
  __shared__ __align__(16) unsigned short left_tile[4096];
  __shared__ __align__(1024) unsigned short right_tile[2048];
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
  const int t15 = local_x / 8;
  const int t16 = t15 * 64;
  const int t17 = local_x % 8 * 8;
  copy_async_16(&right_tile[t16 + (((t17 >> 3) ^ (t15 & 7)) * 8 + (t17 & 7))], &right[t16 + t17]);
  const int t18 = local_x + 128;
  const int t19 = t18 / 8;
  const int t20 = t19 * 64;
  const int t21 = t18 % 8 * 8;
  copy_async_16(&right_tile[t20 + (((t21 >> 3) ^ (t19 & 7)) * 8 + (t21 & 7))], &right[t20 + t21]);
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
  unsigned left0_0 = 0u;
  const int t22 = local_x & 31;
  const int t23 = (local_x >> 5) * 16 + (t22 >> 2);
  const int t24 = t23 * 64;
  const int t25 = (t22 & 3) * 2;
  const int t26 = t23 & 7;
  const int t27 = t25 + 1;
  left0_0 = pack_f16(f16_to_f32(left_tile[t24 + (((t25 >> 3) ^ t26) * 8 + (t25 & 7))]), f16_to_f32(left_tile[t24 + (((t27 >> 3) ^ t26) * 8 + (t27 & 7))]));
  unsigned left0_1 = 0u;
  const int t28 = local_x & 31;
  const int t29 = (local_x >> 5) * 16 + (t28 >> 2) + 8;
  const int t30 = t29 * 64;
  const int t31 = (t28 & 3) * 2;
  const int t32 = t29 & 7;
  const int t33 = t31 + 1;
  left0_1 = pack_f16(f16_to_f32(left_tile[t30 + (((t31 >> 3) ^ t32) * 8 + (t31 & 7))]), f16_to_f32(left_tile[t30 + (((t33 >> 3) ^ t32) * 8 + (t33 & 7))]));
  unsigned left0_2 = 0u;
  const int t34 = local_x & 31;
  const int t35 = (local_x >> 5) * 16 + (t34 >> 2);
  const int t36 = t35 * 64;
  const int t37 = (t34 & 3) * 2;
  const int t38 = t37 + 8;
  const int t39 = t35 & 7;
  const int t40 = t37 + 1 + 8;
  left0_2 = pack_f16(f16_to_f32(left_tile[t36 + (((t38 >> 3) ^ t39) * 8 + (t38 & 7))]), f16_to_f32(left_tile[t36 + (((t40 >> 3) ^ t39) * 8 + (t40 & 7))]));
  unsigned left0_3 = 0u;
  const int t41 = local_x & 31;
  const int t42 = (local_x >> 5) * 16 + (t41 >> 2) + 8;
  const int t43 = t42 * 64;
  const int t44 = (t41 & 3) * 2;
  const int t45 = t44 + 8;
  const int t46 = t42 & 7;
  const int t47 = t44 + 1 + 8;
  left0_3 = pack_f16(f16_to_f32(left_tile[t43 + (((t45 >> 3) ^ t46) * 8 + (t45 & 7))]), f16_to_f32(left_tile[t43 + (((t47 >> 3) ^ t46) * 8 + (t47 & 7))]));
  unsigned left16_0 = 0u;
  const int t48 = local_x & 31;
  const int t49 = (local_x >> 5) * 16 + (t48 >> 2);
  const int t50 = t49 * 64;
  const int t51 = (t48 & 3) * 2;
  const int t52 = t51 + 16;
  const int t53 = t49 & 7;
  const int t54 = t51 + 1 + 16;
  left16_0 = pack_f16(f16_to_f32(left_tile[t50 + (((t52 >> 3) ^ t53) * 8 + (t52 & 7))]), f16_to_f32(left_tile[t50 + (((t54 >> 3) ^ t53) * 8 + (t54 & 7))]));
  unsigned left16_1 = 0u;
  const int t55 = local_x & 31;
  const int t56 = (local_x >> 5) * 16 + (t55 >> 2) + 8;
  const int t57 = t56 * 64;
  const int t58 = (t55 & 3) * 2;
  const int t59 = t58 + 16;
  const int t60 = t56 & 7;
  const int t61 = t58 + 1 + 16;
  left16_1 = pack_f16(f16_to_f32(left_tile[t57 + (((t59 >> 3) ^ t60) * 8 + (t59 & 7))]), f16_to_f32(left_tile[t57 + (((t61 >> 3) ^ t60) * 8 + (t61 & 7))]));
  unsigned left16_2 = 0u;
  const int t62 = local_x & 31;
  const int t63 = (local_x >> 5) * 16 + (t62 >> 2);
  const int t64 = t63 * 64;
  const int t65 = (t62 & 3) * 2;
  const int t66 = t65 + 24;
  const int t67 = t63 & 7;
  const int t68 = t65 + 1 + 24;
  left16_2 = pack_f16(f16_to_f32(left_tile[t64 + (((t66 >> 3) ^ t67) * 8 + (t66 & 7))]), f16_to_f32(left_tile[t64 + (((t68 >> 3) ^ t67) * 8 + (t68 & 7))]));
  unsigned left16_3 = 0u;
  const int t69 = local_x & 31;
  const int t70 = (local_x >> 5) * 16 + (t69 >> 2) + 8;
  const int t71 = t70 * 64;
  const int t72 = (t69 & 3) * 2;
  const int t73 = t72 + 24;
  const int t74 = t70 & 7;
  const int t75 = t72 + 1 + 24;
  left16_3 = pack_f16(f16_to_f32(left_tile[t71 + (((t73 >> 3) ^ t74) * 8 + (t73 & 7))]), f16_to_f32(left_tile[t71 + (((t75 >> 3) ^ t74) * 8 + (t75 & 7))]));
  unsigned left32_0 = 0u;
  const int t76 = local_x & 31;
  const int t77 = (local_x >> 5) * 16 + (t76 >> 2);
  const int t78 = t77 * 64;
  const int t79 = (t76 & 3) * 2;
  const int t80 = t79 + 32;
  const int t81 = t77 & 7;
  const int t82 = t79 + 1 + 32;
  left32_0 = pack_f16(f16_to_f32(left_tile[t78 + (((t80 >> 3) ^ t81) * 8 + (t80 & 7))]), f16_to_f32(left_tile[t78 + (((t82 >> 3) ^ t81) * 8 + (t82 & 7))]));
  unsigned left32_1 = 0u;
  const int t83 = local_x & 31;
  const int t84 = (local_x >> 5) * 16 + (t83 >> 2) + 8;
  const int t85 = t84 * 64;
  const int t86 = (t83 & 3) * 2;
  const int t87 = t86 + 32;
  const int t88 = t84 & 7;
  const int t89 = t86 + 1 + 32;
  left32_1 = pack_f16(f16_to_f32(left_tile[t85 + (((t87 >> 3) ^ t88) * 8 + (t87 & 7))]), f16_to_f32(left_tile[t85 + (((t89 >> 3) ^ t88) * 8 + (t89 & 7))]));
  unsigned left32_2 = 0u;
  const int t90 = local_x & 31;
  const int t91 = (local_x >> 5) * 16 + (t90 >> 2);
  const int t92 = t91 * 64;
  const int t93 = (t90 & 3) * 2;
  const int t94 = t93 + 40;
  const int t95 = t91 & 7;
  const int t96 = t93 + 1 + 40;
  left32_2 = pack_f16(f16_to_f32(left_tile[t92 + (((t94 >> 3) ^ t95) * 8 + (t94 & 7))]), f16_to_f32(left_tile[t92 + (((t96 >> 3) ^ t95) * 8 + (t96 & 7))]));
  unsigned left32_3 = 0u;
  const int t97 = local_x & 31;
  const int t98 = (local_x >> 5) * 16 + (t97 >> 2) + 8;
  const int t99 = t98 * 64;
  const int t100 = (t97 & 3) * 2;
  const int t101 = t100 + 40;
  const int t102 = t98 & 7;
  const int t103 = t100 + 1 + 40;
  left32_3 = pack_f16(f16_to_f32(left_tile[t99 + (((t101 >> 3) ^ t102) * 8 + (t101 & 7))]), f16_to_f32(left_tile[t99 + (((t103 >> 3) ^ t102) * 8 + (t103 & 7))]));
  unsigned left48_0 = 0u;
  const int t104 = local_x & 31;
  const int t105 = (local_x >> 5) * 16 + (t104 >> 2);
  const int t106 = t105 * 64;
  const int t107 = (t104 & 3) * 2;
  const int t108 = t107 + 48;
  const int t109 = t105 & 7;
  const int t110 = t107 + 1 + 48;
  left48_0 = pack_f16(f16_to_f32(left_tile[t106 + (((t108 >> 3) ^ t109) * 8 + (t108 & 7))]), f16_to_f32(left_tile[t106 + (((t110 >> 3) ^ t109) * 8 + (t110 & 7))]));
  unsigned left48_1 = 0u;
  const int t111 = local_x & 31;
  const int t112 = (local_x >> 5) * 16 + (t111 >> 2) + 8;
  const int t113 = t112 * 64;
  const int t114 = (t111 & 3) * 2;
  const int t115 = t114 + 48;
  const int t116 = t112 & 7;
  const int t117 = t114 + 1 + 48;
  left48_1 = pack_f16(f16_to_f32(left_tile[t113 + (((t115 >> 3) ^ t116) * 8 + (t115 & 7))]), f16_to_f32(left_tile[t113 + (((t117 >> 3) ^ t116) * 8 + (t117 & 7))]));
  unsigned left48_2 = 0u;
  const int t118 = local_x & 31;
  const int t119 = (local_x >> 5) * 16 + (t118 >> 2);
  const int t120 = t119 * 64;
  const int t121 = (t118 & 3) * 2;
  const int t122 = t121 + 56;
  const int t123 = t119 & 7;
  const int t124 = t121 + 1 + 56;
  left48_2 = pack_f16(f16_to_f32(left_tile[t120 + (((t122 >> 3) ^ t123) * 8 + (t122 & 7))]), f16_to_f32(left_tile[t120 + (((t124 >> 3) ^ t123) * 8 + (t124 & 7))]));
  unsigned left48_3 = 0u;
  const int t125 = local_x & 31;
  const int t126 = (local_x >> 5) * 16 + (t125 >> 2) + 8;
  const int t127 = t126 * 64;
  const int t128 = (t125 & 3) * 2;
  const int t129 = t128 + 56;
  const int t130 = t126 & 7;
  const int t131 = t128 + 1 + 56;
  left48_3 = pack_f16(f16_to_f32(left_tile[t127 + (((t129 >> 3) ^ t130) * 8 + (t129 & 7))]), f16_to_f32(left_tile[t127 + (((t131 >> 3) ^ t130) * 8 + (t131 & 7))]));
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  wgmma_f16_32_left_00(left0_0, left0_1, left0_2, left0_3, tile_of(right_tile, 0, 16),
    sum0, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15);
  wgmma_f16_32_left_00(left16_0, left16_1, left16_2, left16_3, tile_of(right_tile, 2, 16),
    sum0, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15);
  wgmma_f16_32_left_00(left32_0, left32_1, left32_2, left32_3, tile_of(right_tile, 4, 16),
    sum0, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15);
  wgmma_f16_32_left_00(left48_0, left48_1, left48_2, left48_3, tile_of(right_tile, 6, 16),
    sum0, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15);
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(sum0), "+f"(sum1), "+f"(sum2), "+f"(sum3), "+f"(sum4), "+f"(sum5), "+f"(sum6), "+f"(sum7), "+f"(sum8), "+f"(sum9), "+f"(sum10), "+f"(sum11), "+f"(sum12), "+f"(sum13), "+f"(sum14), "+f"(sum15) :: "memory");
  const int t132 = local_x & 31;
  result[((local_x >> 5) * 16 + (t132 >> 2)) * 32 + (t132 & 3) * 2] = sum0;
  const int t133 = local_x & 31;
  result[((local_x >> 5) * 16 + (t133 >> 2)) * 32 + ((t133 & 3) * 2 + 1)] = sum1;
  const int t134 = local_x & 31;
  result[((local_x >> 5) * 16 + (t134 >> 2) + 8) * 32 + (t134 & 3) * 2] = sum2;
  const int t135 = local_x & 31;
  result[((local_x >> 5) * 16 + (t135 >> 2) + 8) * 32 + ((t135 & 3) * 2 + 1)] = sum3;
  const int t136 = local_x & 31;
  result[((local_x >> 5) * 16 + (t136 >> 2)) * 32 + ((t136 & 3) * 2 + 8)] = sum4;
  const int t137 = local_x & 31;
  result[((local_x >> 5) * 16 + (t137 >> 2)) * 32 + ((t137 & 3) * 2 + 9)] = sum5;
  const int t138 = local_x & 31;
  result[((local_x >> 5) * 16 + (t138 >> 2) + 8) * 32 + ((t138 & 3) * 2 + 8)] = sum6;
  const int t139 = local_x & 31;
  result[((local_x >> 5) * 16 + (t139 >> 2) + 8) * 32 + ((t139 & 3) * 2 + 9)] = sum7;
  const int t140 = local_x & 31;
  result[((local_x >> 5) * 16 + (t140 >> 2)) * 32 + ((t140 & 3) * 2 + 16)] = sum8;
  const int t141 = local_x & 31;
  result[((local_x >> 5) * 16 + (t141 >> 2)) * 32 + ((t141 & 3) * 2 + 17)] = sum9;
  const int t142 = local_x & 31;
  result[((local_x >> 5) * 16 + (t142 >> 2) + 8) * 32 + ((t142 & 3) * 2 + 16)] = sum10;
  const int t143 = local_x & 31;
  result[((local_x >> 5) * 16 + (t143 >> 2) + 8) * 32 + ((t143 & 3) * 2 + 17)] = sum11;
  const int t144 = local_x & 31;
  result[((local_x >> 5) * 16 + (t144 >> 2)) * 32 + ((t144 & 3) * 2 + 24)] = sum12;
  const int t145 = local_x & 31;
  result[((local_x >> 5) * 16 + (t145 >> 2)) * 32 + ((t145 & 3) * 2 + 25)] = sum13;
  const int t146 = local_x & 31;
  result[((local_x >> 5) * 16 + (t146 >> 2) + 8) * 32 + ((t146 & 3) * 2 + 24)] = sum14;
  const int t147 = local_x & 31;
  result[((local_x >> 5) * 16 + (t147 >> 2) + 8) * 32 + ((t147 & 3) * 2 + 25)] = sum15;
}
