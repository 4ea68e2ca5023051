// relay

struct __align__(64) TensorMap {
  unsigned char bytes[128];
};

static __device__ __forceinline__ void begin_barrier(unsigned long long *barrier, int warps) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"((unsigned)__cvta_generic_to_shared(barrier)), "r"(warps) : "memory");
}

static __device__ __forceinline__ void await_phase(unsigned long long *barrier, int phase) {
  asm volatile("{\n.reg .pred over;\nagain:\n"
               "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n@!over bra again;\n}"
               :: "r"((unsigned)__cvta_generic_to_shared(barrier)), "r"(phase & 1) : "memory");
}

static __device__ __forceinline__ unsigned long long tile_of(const void *array, int piece, int panel) {
  const unsigned low = ((unsigned)__cvta_generic_to_shared(array) >> 4) + ((unsigned)panel >> 4 << 16) + (unsigned)piece;
  return (unsigned long long)low | 64ull << 32 | 1ull << 62;
}

static __device__ __forceinline__ void wgmma_bf16_64_01(unsigned long long a, unsigned long long b, float &d0, float &d1, float &d2, float &d3, float &d4, float &d5, float &d6, float &d7, float &d8, float &d9, float &d10, float &d11, float &d12, float &d13, float &d14, float &d15, float &d16, float &d17, float &d18, float &d19, float &d20, float &d21, float &d22, float &d23, float &d24, float &d25, float &d26, float &d27, float &d28, float &d29, float &d30, float &d31) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, 1, 1, 1, 0, 1;"
               : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3), "+f"(d4), "+f"(d5), "+f"(d6), "+f"(d7), "+f"(d8), "+f"(d9), "+f"(d10), "+f"(d11), "+f"(d12), "+f"(d13), "+f"(d14), "+f"(d15), "+f"(d16), "+f"(d17), "+f"(d18), "+f"(d19), "+f"(d20), "+f"(d21), "+f"(d22), "+f"(d23), "+f"(d24), "+f"(d25), "+f"(d26), "+f"(d27), "+f"(d28), "+f"(d29), "+f"(d30), "+f"(d31)
               : "l"(a), "l"(b));
}

static __device__ __forceinline__ void arrive_at(unsigned long long *barrier) {
  __syncwarp();
  if (threadIdx.x % 32u == 0u)
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"((unsigned)__cvta_generic_to_shared(barrier)) : "memory");
}

static __device__ __forceinline__ void copy_box_2(void *to, const TensorMap *box, int x0, int x1, unsigned long long *barrier, unsigned bytes) {
  if (threadIdx.x % 32u == 0u)
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%2], %3;\n"
                 "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%4, %5}], [%2];"
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(box), "r"((unsigned)__cvta_generic_to_shared(barrier)), "r"(bytes), "r"(x0), "r"(x1) : "memory");
}

extern "C" __global__ void __launch_bounds__(160, 1) k_relay(
    const unsigned short *__restrict__ left,
    const unsigned short *__restrict__ right,
    float *result,
    const __grid_constant__ TensorMap box0,
    const __grid_constant__ TensorMap box1) {
  extern __shared__ __align__(1024) unsigned char dynamic_shared[];
  unsigned short *const left_tile = (unsigned short *)(dynamic_shared + 0);
  unsigned short *const right_tile = (unsigned short *)(dynamic_shared + 16384);
  float *const sums = (float *)(dynamic_shared + 32768);
  unsigned long long *const full = (unsigned long long *)(dynamic_shared + 49152);
  unsigned long long *const empty = (unsigned long long *)(dynamic_shared + 49168);
  if (threadIdx.x == 0u) {
    for (int i = 0; i < 2; i++) begin_barrier(&full[i], 1);
    for (int i = 0; i < 2; i++) begin_barrier(&empty[i], 4);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();
  const int local_x = int(threadIdx.x);
  if (int(threadIdx.x) < 128) {
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
    float sum16 = 0.0f;
    float sum17 = 0.0f;
    float sum18 = 0.0f;
    float sum19 = 0.0f;
    float sum20 = 0.0f;
    float sum21 = 0.0f;
    float sum22 = 0.0f;
    float sum23 = 0.0f;
    float sum24 = 0.0f;
    float sum25 = 0.0f;
    float sum26 = 0.0f;
    float sum27 = 0.0f;
    float sum28 = 0.0f;
    float sum29 = 0.0f;
    float sum30 = 0.0f;
    float sum31 = 0.0f;
    for (int turn = 0; turn < 3; turn++) {
      await_phase(&full[turn & 1], turn >> 1);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      wgmma_bf16_64_01(tile_of(left_tile, (turn & 1) * 512, 16), tile_of(right_tile, (turn & 1) * 512, 8192),
    sum0, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15, sum16, sum17, sum18, sum19, sum20, sum21, sum22, sum23, sum24, sum25, sum26, sum27, sum28, sum29, sum30, sum31);
      wgmma_bf16_64_01(tile_of(left_tile, (turn & 1) * 512 + 2, 16), tile_of(right_tile, (turn & 1) * 512 + 128, 8192),
    sum0, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15, sum16, sum17, sum18, sum19, sum20, sum21, sum22, sum23, sum24, sum25, sum26, sum27, sum28, sum29, sum30, sum31);
      wgmma_bf16_64_01(tile_of(left_tile, (turn & 1) * 512 + 4, 16), tile_of(right_tile, (turn & 1) * 512 + 256, 8192),
    sum0, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15, sum16, sum17, sum18, sum19, sum20, sum21, sum22, sum23, sum24, sum25, sum26, sum27, sum28, sum29, sum30, sum31);
      wgmma_bf16_64_01(tile_of(left_tile, (turn & 1) * 512 + 6, 16), tile_of(right_tile, (turn & 1) * 512 + 384, 8192),
    sum0, sum1, sum2, sum3, sum4, sum5, sum6, sum7, sum8, sum9, sum10, sum11, sum12, sum13, sum14, sum15, sum16, sum17, sum18, sum19, sum20, sum21, sum22, sum23, sum24, sum25, sum26, sum27, sum28, sum29, sum30, sum31);
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      asm volatile("wgmma.wait_group.sync.aligned 0;" :  :: "memory");
      arrive_at(&empty[turn & 1]);
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(sum0), "+f"(sum1), "+f"(sum2), "+f"(sum3), "+f"(sum4), "+f"(sum5), "+f"(sum6), "+f"(sum7), "+f"(sum8), "+f"(sum9), "+f"(sum10), "+f"(sum11), "+f"(sum12), "+f"(sum13), "+f"(sum14), "+f"(sum15), "+f"(sum16), "+f"(sum17), "+f"(sum18), "+f"(sum19), "+f"(sum20), "+f"(sum21), "+f"(sum22), "+f"(sum23), "+f"(sum24), "+f"(sum25), "+f"(sum26), "+f"(sum27), "+f"(sum28), "+f"(sum29), "+f"(sum30), "+f"(sum31) :: "memory");
    const int t0 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t0 >> 2)) * 64 + (t0 & 3) * 2] = sum0;
    const int t1 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t1 >> 2)) * 64 + ((t1 & 3) * 2 + 1)] = sum1;
    const int t2 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t2 >> 2) + 8) * 64 + (t2 & 3) * 2] = sum2;
    const int t3 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t3 >> 2) + 8) * 64 + ((t3 & 3) * 2 + 1)] = sum3;
    const int t4 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t4 >> 2)) * 64 + ((t4 & 3) * 2 + 8)] = sum4;
    const int t5 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t5 >> 2)) * 64 + ((t5 & 3) * 2 + 9)] = sum5;
    const int t6 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t6 >> 2) + 8) * 64 + ((t6 & 3) * 2 + 8)] = sum6;
    const int t7 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t7 >> 2) + 8) * 64 + ((t7 & 3) * 2 + 9)] = sum7;
    const int t8 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t8 >> 2)) * 64 + ((t8 & 3) * 2 + 16)] = sum8;
    const int t9 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t9 >> 2)) * 64 + ((t9 & 3) * 2 + 17)] = sum9;
    const int t10 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t10 >> 2) + 8) * 64 + ((t10 & 3) * 2 + 16)] = sum10;
    const int t11 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t11 >> 2) + 8) * 64 + ((t11 & 3) * 2 + 17)] = sum11;
    const int t12 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t12 >> 2)) * 64 + ((t12 & 3) * 2 + 24)] = sum12;
    const int t13 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t13 >> 2)) * 64 + ((t13 & 3) * 2 + 25)] = sum13;
    const int t14 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t14 >> 2) + 8) * 64 + ((t14 & 3) * 2 + 24)] = sum14;
    const int t15 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t15 >> 2) + 8) * 64 + ((t15 & 3) * 2 + 25)] = sum15;
    const int t16 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t16 >> 2)) * 64 + ((t16 & 3) * 2 + 32)] = sum16;
    const int t17 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t17 >> 2)) * 64 + ((t17 & 3) * 2 + 33)] = sum17;
    const int t18 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t18 >> 2) + 8) * 64 + ((t18 & 3) * 2 + 32)] = sum18;
    const int t19 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t19 >> 2) + 8) * 64 + ((t19 & 3) * 2 + 33)] = sum19;
    const int t20 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t20 >> 2)) * 64 + ((t20 & 3) * 2 + 40)] = sum20;
    const int t21 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t21 >> 2)) * 64 + ((t21 & 3) * 2 + 41)] = sum21;
    const int t22 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t22 >> 2) + 8) * 64 + ((t22 & 3) * 2 + 40)] = sum22;
    const int t23 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t23 >> 2) + 8) * 64 + ((t23 & 3) * 2 + 41)] = sum23;
    const int t24 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t24 >> 2)) * 64 + ((t24 & 3) * 2 + 48)] = sum24;
    const int t25 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t25 >> 2)) * 64 + ((t25 & 3) * 2 + 49)] = sum25;
    const int t26 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t26 >> 2) + 8) * 64 + ((t26 & 3) * 2 + 48)] = sum26;
    const int t27 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t27 >> 2) + 8) * 64 + ((t27 & 3) * 2 + 49)] = sum27;
    const int t28 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t28 >> 2)) * 64 + ((t28 & 3) * 2 + 56)] = sum28;
    const int t29 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t29 >> 2)) * 64 + ((t29 & 3) * 2 + 57)] = sum29;
    const int t30 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t30 >> 2) + 8) * 64 + ((t30 & 3) * 2 + 56)] = sum30;
    const int t31 = local_x & 31;
    sums[((local_x >> 5) * 16 + (t31 >> 2) + 8) * 64 + ((t31 & 3) * 2 + 57)] = sum31;
    asm volatile("bar.sync 1, 128;" ::: "memory");
    if ((local_x >> 1) < 56) {
      const int t32 = local_x >> 1;
      const int t33 = (local_x & 1) * 28;
      result[t32 * 56 + t33] = sums[t32 * 64 + t33];
      const int t34 = local_x >> 1;
      const int t35 = (local_x & 1) * 28 + 1;
      result[t34 * 56 + t35] = sums[t34 * 64 + t35];
      const int t36 = local_x >> 1;
      const int t37 = (local_x & 1) * 28 + 2;
      result[t36 * 56 + t37] = sums[t36 * 64 + t37];
      const int t38 = local_x >> 1;
      const int t39 = (local_x & 1) * 28 + 3;
      result[t38 * 56 + t39] = sums[t38 * 64 + t39];
      const int t40 = local_x >> 1;
      const int t41 = (local_x & 1) * 28 + 4;
      result[t40 * 56 + t41] = sums[t40 * 64 + t41];
      const int t42 = local_x >> 1;
      const int t43 = (local_x & 1) * 28 + 5;
      result[t42 * 56 + t43] = sums[t42 * 64 + t43];
      const int t44 = local_x >> 1;
      const int t45 = (local_x & 1) * 28 + 6;
      result[t44 * 56 + t45] = sums[t44 * 64 + t45];
      const int t46 = local_x >> 1;
      const int t47 = (local_x & 1) * 28 + 7;
      result[t46 * 56 + t47] = sums[t46 * 64 + t47];
      const int t48 = local_x >> 1;
      const int t49 = (local_x & 1) * 28 + 8;
      result[t48 * 56 + t49] = sums[t48 * 64 + t49];
      const int t50 = local_x >> 1;
      const int t51 = (local_x & 1) * 28 + 9;
      result[t50 * 56 + t51] = sums[t50 * 64 + t51];
      const int t52 = local_x >> 1;
      const int t53 = (local_x & 1) * 28 + 10;
      result[t52 * 56 + t53] = sums[t52 * 64 + t53];
      const int t54 = local_x >> 1;
      const int t55 = (local_x & 1) * 28 + 11;
      result[t54 * 56 + t55] = sums[t54 * 64 + t55];
      const int t56 = local_x >> 1;
      const int t57 = (local_x & 1) * 28 + 12;
      result[t56 * 56 + t57] = sums[t56 * 64 + t57];
      const int t58 = local_x >> 1;
      const int t59 = (local_x & 1) * 28 + 13;
      result[t58 * 56 + t59] = sums[t58 * 64 + t59];
      const int t60 = local_x >> 1;
      const int t61 = (local_x & 1) * 28 + 14;
      result[t60 * 56 + t61] = sums[t60 * 64 + t61];
      const int t62 = local_x >> 1;
      const int t63 = (local_x & 1) * 28 + 15;
      result[t62 * 56 + t63] = sums[t62 * 64 + t63];
      const int t64 = local_x >> 1;
      const int t65 = (local_x & 1) * 28 + 16;
      result[t64 * 56 + t65] = sums[t64 * 64 + t65];
      const int t66 = local_x >> 1;
      const int t67 = (local_x & 1) * 28 + 17;
      result[t66 * 56 + t67] = sums[t66 * 64 + t67];
      const int t68 = local_x >> 1;
      const int t69 = (local_x & 1) * 28 + 18;
      result[t68 * 56 + t69] = sums[t68 * 64 + t69];
      const int t70 = local_x >> 1;
      const int t71 = (local_x & 1) * 28 + 19;
      result[t70 * 56 + t71] = sums[t70 * 64 + t71];
      const int t72 = local_x >> 1;
      const int t73 = (local_x & 1) * 28 + 20;
      result[t72 * 56 + t73] = sums[t72 * 64 + t73];
      const int t74 = local_x >> 1;
      const int t75 = (local_x & 1) * 28 + 21;
      result[t74 * 56 + t75] = sums[t74 * 64 + t75];
      const int t76 = local_x >> 1;
      const int t77 = (local_x & 1) * 28 + 22;
      result[t76 * 56 + t77] = sums[t76 * 64 + t77];
      const int t78 = local_x >> 1;
      const int t79 = (local_x & 1) * 28 + 23;
      result[t78 * 56 + t79] = sums[t78 * 64 + t79];
      const int t80 = local_x >> 1;
      const int t81 = (local_x & 1) * 28 + 24;
      result[t80 * 56 + t81] = sums[t80 * 64 + t81];
      const int t82 = local_x >> 1;
      const int t83 = (local_x & 1) * 28 + 25;
      result[t82 * 56 + t83] = sums[t82 * 64 + t83];
      const int t84 = local_x >> 1;
      const int t85 = (local_x & 1) * 28 + 26;
      result[t84 * 56 + t85] = sums[t84 * 64 + t85];
      const int t86 = local_x >> 1;
      const int t87 = (local_x & 1) * 28 + 27;
      result[t86 * 56 + t87] = sums[t86 * 64 + t87];
    }
  } else {
    for (int turn = 0; turn < 3; turn++) {
      await_phase(&empty[turn & 1], (turn >> 1) - 1);
      const int t88 = turn & 1;
      copy_box_2(&left_tile[t88 * 4096], &box0, turn * 64, 0, &full[t88], 8192);
      const int t89 = turn & 1;
      copy_box_2(&right_tile[t89 * 4096], &box1, 0, turn * 64, &full[t89], 8192);
      arrive_at(&full[turn & 1]);
    }
  }
}
