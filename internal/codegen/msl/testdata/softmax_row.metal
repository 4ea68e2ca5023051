// softmax_row
#include <metal_stdlib>
using namespace metal;

static float max_f32(float x, float y) {
  const uint t0 = ((as_type<uint>(x) & 2147483647u) > 2139095040u ? as_type<uint>(x) : (x > y ? as_type<uint>(x) : as_type<uint>(y)));
  return as_type<float>(((as_type<uint>(y) & 2147483647u) > 2139095040u ? as_type<uint>(y) : t0));
}

static float exp_f32(float x) {
  const float t0 = (x > -104.0f ? x : -104.0f);
  const float t1 = (t0 < 89.0f ? t0 : 89.0f);
  const float t2 = t1 * 1.442695f + 1.2582912e+07f;
  const uint t3 = uint(as_type<int>(t2)) - 1262485504u;
  const int t4 = int(t3);
  const float t5 = float(t4);
  const float t6 = as_type<float>(as_type<uint>(t1 - t5 * 0.69314575f) & (as_type<uint>(t2) | 3221225471u)) - t5 * 1.4286068e-06f;
  const bool t7 = t4 < -100;
  const float t8 = (((0.00020061275f * t6 + 0.0014001469f) * t6 + 0.008332935f) * t6 + 0.04166517f) * t6 + 0.16666669f;
  const uint t9 = uint(as_type<int>(t6 + t6 * (t6 * (t8 * t6 + 0.50000006f)) + 1.0f)) + (uint((t7 ? int(t3 + 64u) : t4)) << 23u);
  const uint t10 = (as_type<int>(x) > 1118925335 ? 2139095040u : as_type<uint>(as_type<float>(int(t9)) * (t7 ? 5.421011e-20f : 1.0f)));
  return as_type<float>(((as_type<uint>(x) & 2147483647u) > 2139095040u ? as_type<uint>(x) : t10));
}

[[max_total_threads_per_threadgroup(32)]]
kernel void k_softmax_row(
    device const float *x [[buffer(0)]],
    device float *y [[buffer(1)]],
    uint local_number [[thread_index_in_threadgroup]],
    uint3 group_id [[threadgroup_position_in_grid]]) {
  threadgroup float partial[32];
  const int group_x = int(group_id.x);
  const int local_index = int(local_number);
  float top = -3.4028235e+38f;
  for (int j = local_index; j < 70; j += 32) {
    top = max_f32(top, x[int(uint(group_x * 70) + uint(j))]);
  }
  partial[local_index] = top;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (local_index < 16) {
    partial[local_index] = max_f32(partial[local_index], partial[local_index + 16]);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (local_index < 8) {
    partial[local_index] = max_f32(partial[local_index], partial[local_index + 8]);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (local_index < 4) {
    partial[local_index] = max_f32(partial[local_index], partial[local_index + 4]);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (local_index < 2) {
    partial[local_index] = max_f32(partial[local_index], partial[local_index + 2]);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (local_index < 1) {
    partial[local_index] = max_f32(partial[local_index], partial[local_index + 1]);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float row_top = partial[0];
  float sum = 0.0f;
  for (int j = local_index; j < 70; j += 32) {
    sum += exp_f32(x[int(uint(group_x * 70) + uint(j))] - row_top);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  partial[local_index] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (local_index < 16) {
    partial[local_index] = partial[local_index] + partial[local_index + 16];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (local_index < 8) {
    partial[local_index] = partial[local_index] + partial[local_index + 8];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (local_index < 4) {
    partial[local_index] = partial[local_index] + partial[local_index + 4];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (local_index < 2) {
    partial[local_index] = partial[local_index] + partial[local_index + 2];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (local_index < 1) {
    partial[local_index] = partial[local_index] + partial[local_index + 1];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float scale = 1.0f / partial[0];
  for (int j = local_index; j < 70; j += 32) {
    const int t0 = int(uint(group_x * 70) + uint(j));
    y[t0] = exp_f32(x[t0] - row_top) * scale;
  }
}
