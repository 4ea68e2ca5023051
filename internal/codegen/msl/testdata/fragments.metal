// fragments
#include <metal_stdlib>
using namespace metal;

[[max_total_threads_per_threadgroup(64)]]
kernel void k_fragments(
    device const float *x [[buffer(0)]],
    device const float *y [[buffer(1)]],
    device float *z [[buffer(2)]],
    uint3 local_id [[thread_position_in_threadgroup]],
    uint simd_number [[simdgroup_index_in_threadgroup]]) {
  threadgroup float left[256];
  threadgroup float right[384];
  threadgroup float sums[448];
  const int local_x = int(local_id.x);
  const int subgroup_index = int(simd_number);
  for (int at = local_x; at < 256; at += 64) {
    left[at] = x[at];
  }
  for (int at = local_x; at < 384; at += 64) {
    right[at % 24 * 16 + at / 24] = y[at];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_float8x8 d0 = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  simdgroup_float8x8 d1 = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  simdgroup_float8x8 d2 = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  for (int k = 0; k < 16; k += 8) {
    simdgroup_float8x8 a;
    simdgroup_load(a, &left[int(uint(subgroup_index * 8 * 16) + uint(k))], 16);
    simdgroup_float8x8 b0;
    simdgroup_load(b0, &right[k], 16, ulong2(0, 0), true);
    simdgroup_multiply_accumulate(d0, a, b0, d0);
    simdgroup_float8x8 b1;
    simdgroup_load(b1, &right[int(128u + uint(k))], 16, ulong2(0, 0), true);
    simdgroup_multiply_accumulate(d1, a, b1, d1);
    simdgroup_float8x8 b2;
    simdgroup_load(b2, &right[int(256u + uint(k))], 16, ulong2(0, 0), true);
    simdgroup_multiply_accumulate(d2, a, b2, d2);
  }
  simdgroup_store(d0, &sums[subgroup_index * 8 * 28], 28);
  simdgroup_store(d1, &sums[subgroup_index * 8 * 28 + 8], 28);
  simdgroup_store(d2, &sums[subgroup_index * 8 * 28 + 16], 28);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int at = local_x; at < 384; at += 64) {
    z[at] = sums[int(uint(at / 24) * 28u + uint(at % 24))];
  }
}
