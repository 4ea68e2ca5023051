// shuffled
#include <metal_stdlib>
using namespace metal;

[[max_total_threads_per_threadgroup(64)]]
kernel void k_shuffled(
    device const float *x [[buffer(0)]],
    device float *y [[buffer(1)]],
    uint local_number [[thread_index_in_threadgroup]]) {
  const int local_index = int(local_number);
  const float x0 = x[local_index];
  const float other0 = simd_shuffle_xor(x0, ushort(1));
  const float other1 = simd_shuffle_xor(x0, ushort(6));
  const float other2 = simd_shuffle_xor(x0, ushort(31));
  y[local_index] = ((x0 * 2.0f + other0) * 2.0f + other1) * 2.0f + other2;
}
