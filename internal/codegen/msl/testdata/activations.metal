// activations
#include <metal_stdlib>
using namespace metal;

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

static float tanh_f32(float x) {
  const float t0 = fabs(x);
  const float t1 = t0 * t0;
  const float t2 = (t0 < 10.0f ? t0 : 10.0f) * 2.0f;
  const float t3 = t2 * 1.442695f + 1.2582912e+07f;
  const uint t4 = uint(as_type<int>(t3)) - 1262485504u;
  const float t5 = float(int(t4));
  const float t6 = as_type<float>(as_type<uint>(t2 - t5 * 0.69314575f) & (as_type<uint>(t3) | 3221225471u)) - t5 * 1.4286068e-06f;
  const float t7 = (((-0.005927171f * t1 + 0.020826304f) * t1 - 0.053794f) * t1 + 0.13332064f) * t1 - 0.33333305f;
  const float t8 = (((0.00020061275f * t6 + 0.0014001469f) * t6 + 0.008332935f) * t6 + 0.04166517f) * t6 + 0.16666669f;
  const float t9 = as_type<float>(int(uint(as_type<int>(t6 + t6 * (t6 * (t8 * t6 + 0.50000006f)) + 1.0f)) + (t4 << 23u)));
  const uint t10 = as_type<uint>((t0 < 0.6f ? t0 + t0 * (t1 * t7) : 1.0f - 2.0f / (t9 + 1.0f))) | (as_type<uint>(x) & 2147483648u);
  return as_type<float>(((as_type<uint>(x) & 2147483647u) > 2139095040u ? as_type<uint>(x) : t10));
}

static float erf_f32(float x) {
  const float t0 = fabs(x);
  const float t1 = t0 * t0;
  const float t2 = (t0 < 3.95f ? t0 : 3.95f);
  const float t3 = (((0.00028269368f * t2 - 0.0043905396f) * t2 + 0.032066934f) * t2 - 0.14994192f) * t2 - 0.9192595f;
  const float t4 = (t3 * t2 - 1.6268921f) * t2 - 0.00028230366f;
  const uint t5 = uint(as_type<int>(t4 + 1.2582912e+07f)) - 1262485504u;
  const float t6 = t4 - float(int(t5));
  const float t7 = (((-0.00059954793f * t1 + 0.0049942047f) * t1 - 0.026767438f) * t1 + 0.11281845f) * t1 - 0.37612498f;
  const float t8 = (((0.00015487339f * t6 + 0.0013410673f) * t6 + 0.009617883f) * t6 + 0.05550289f) * t6 + 0.24022654f;
  const float t9 = 1.0f - as_type<float>(int(uint(as_type<int>(t6 * (t8 * t6 + 0.69314724f) + 1.0f)) + (t5 << 23u)));
  const uint t10 = as_type<uint>((t0 < 0.92f ? t0 + t0 * (t7 * t1 + 0.12837915f) : t9)) | (as_type<uint>(x) & 2147483648u);
  return as_type<float>(((as_type<uint>(x) & 2147483647u) > 2139095040u ? as_type<uint>(x) : t10));
}

static float sin_f32(float x) {
  const float t0 = fabs(x);
  const bool t1 = t0 < 0.7853982f;
  const uint t2 = as_type<uint>(t0);
  const uint t3 = (t2 & 8388607u) | 8388608u;
  const uint t4 = (t2 >> 23u) - 120u;
  const bool t5 = t4 < 32u;
  const bool t6 = t4 < 64u;
  const bool t7 = t4 < 96u;
  const bool t8 = t4 < 128u;
  const uint t9 = t4 & 31u;
  const uint t10 = (t5 ? 2734261102u : (t6 ? 1313084713u : (t7 ? 4230436817u : (t8 ? 4113882560u : 3680671129u))));
  const uint t11 = 31u - t9;
  const uint t12 = (t5 ? 1313084713u : (t6 ? 4230436817u : (t7 ? 4113882560u : (t8 ? 3680671129u : 1011060801u))));
  const uint t13 = (t10 << t9) | ((t12 >> 1u) >> t11);
  const uint t14 = (t5 ? 4230436817u : (t6 ? 4113882560u : (t7 ? 3680671129u : (t8 ? 1011060801u : 4266746795u))));
  const uint t15 = ((t3 >> 8u) * (((t12 << t9) | ((t14 >> 1u) >> t11)) >> 16u)) >> 8u;
  const uint t16 = t3 * t13 + t15;
  const uint t17 = (t5 ? 0u : (t6 ? 2734261102u : (t7 ? 1313084713u : (t8 ? 4230436817u : 4113882560u)))) << t9;
  const uint t18 = ((((t3 * (t13 & 255u)) >> 8u) + t3 * ((t13 >> 8u) & 255u)) >> 8u) + t3 * ((t13 >> 16u) & 255u);
  const uint t19 = t3 * (t17 | ((t10 >> 1u) >> t11)) + (((t18 >> 8u) + t3 * ((t13 >> 24u) & 255u)) >> 8u) + (t16 < t15 ? 1u : 0u);
  const uint t20 = t19 + 536870912u;
  const uint t21 = (t1 ? 0u : t20 >> 30u);
  const float t22 = (float(as_type<int>(t20 & 1073741823u) - 536870912) + float(t16) * 2.3283064e-10f) * 1.4629181e-09f;
  const float t23 = (t1 ? t0 : t22);
  const float t24 = t23 * t23;
  const float t25 = ((t21 & 1u) != 0u ? 1.0f + t24 * (t24 * ((2.4477922e-05f * t24 - 0.0013887704f) * t24 + 0.041666653f) - 0.5f) : t23 + t23 * (t24 * ((-0.00019530271f * t24 + 0.008332258f) * t24 - 0.16666655f)));
  const uint t26 = ((as_type<uint>(x) & 2147483647u) < 2139095040u ? as_type<uint>(t25) ^ (((t21 << 30u) ^ as_type<uint>(x)) & 2147483648u) : 2143289344u);
  return as_type<float>(t26);
}

static float cos_f32(float x) {
  const float t0 = fabs(x);
  const bool t1 = t0 < 0.7853982f;
  const uint t2 = as_type<uint>(t0);
  const uint t3 = (t2 & 8388607u) | 8388608u;
  const uint t4 = (t2 >> 23u) - 120u;
  const bool t5 = t4 < 32u;
  const bool t6 = t4 < 64u;
  const bool t7 = t4 < 96u;
  const bool t8 = t4 < 128u;
  const uint t9 = t4 & 31u;
  const uint t10 = (t5 ? 2734261102u : (t6 ? 1313084713u : (t7 ? 4230436817u : (t8 ? 4113882560u : 3680671129u))));
  const uint t11 = 31u - t9;
  const uint t12 = (t5 ? 1313084713u : (t6 ? 4230436817u : (t7 ? 4113882560u : (t8 ? 3680671129u : 1011060801u))));
  const uint t13 = (t10 << t9) | ((t12 >> 1u) >> t11);
  const uint t14 = (t5 ? 4230436817u : (t6 ? 4113882560u : (t7 ? 3680671129u : (t8 ? 1011060801u : 4266746795u))));
  const uint t15 = ((t3 >> 8u) * (((t12 << t9) | ((t14 >> 1u) >> t11)) >> 16u)) >> 8u;
  const uint t16 = t3 * t13 + t15;
  const uint t17 = (t5 ? 0u : (t6 ? 2734261102u : (t7 ? 1313084713u : (t8 ? 4230436817u : 4113882560u)))) << t9;
  const uint t18 = ((((t3 * (t13 & 255u)) >> 8u) + t3 * ((t13 >> 8u) & 255u)) >> 8u) + t3 * ((t13 >> 16u) & 255u);
  const uint t19 = t3 * (t17 | ((t10 >> 1u) >> t11)) + (((t18 >> 8u) + t3 * ((t13 >> 24u) & 255u)) >> 8u) + (t16 < t15 ? 1u : 0u);
  const uint t20 = t19 + 536870912u;
  const uint t21 = (t1 ? 0u : t20 >> 30u);
  const float t22 = (float(as_type<int>(t20 & 1073741823u) - 536870912) + float(t16) * 2.3283064e-10f) * 1.4629181e-09f;
  const float t23 = (t1 ? t0 : t22);
  const float t24 = t23 * t23;
  const float t25 = ((t21 & 1u) != 0u ? t23 + t23 * (t24 * ((-0.00019530271f * t24 + 0.008332258f) * t24 - 0.16666655f)) : 1.0f + t24 * (t24 * ((2.4477922e-05f * t24 - 0.0013887704f) * t24 + 0.041666653f) - 0.5f));
  const uint t26 = ((as_type<uint>(x) & 2147483647u) < 2139095040u ? as_type<uint>(t25) ^ (((t21 + 1u) << 30u) & 2147483648u) : 2143289344u);
  return as_type<float>(t26);
}

static float sigmoid_f32(float x) {
  const float t0 = fabs(x);
  const float t1 = -(t0 < 104.0f ? t0 : 104.0f);
  const float t2 = t1 * 1.442695f + 1.2582912e+07f;
  const uint t3 = uint(as_type<int>(t2)) - 1262485504u;
  const int t4 = int(t3);
  const float t5 = float(t4);
  const float t6 = as_type<float>(as_type<uint>(t1 - t5 * 0.69314575f) & (as_type<uint>(t2) | 3221225471u)) - t5 * 1.4286068e-06f;
  const bool t7 = t4 < -100;
  const float t8 = (((0.00020061275f * t6 + 0.0014001469f) * t6 + 0.008332935f) * t6 + 0.04166517f) * t6 + 0.16666669f;
  const uint t9 = uint(as_type<int>(t6 + t6 * (t6 * (t8 * t6 + 0.50000006f)) + 1.0f)) + (uint((t7 ? int(t3 + 64u) : t4)) << 23u);
  const float t10 = as_type<float>(int(t9)) * (t7 ? 5.421011e-20f : 1.0f);
  const float t11 = 1.0f / (t10 + 1.0f);
  const uint t12 = ((as_type<uint>(x) & 2147483647u) > 2139095040u ? as_type<uint>(x) : as_type<uint>((x < 0.0f ? t10 * t11 : t11)));
  return as_type<float>(t12);
}

static float log1p_f32(float x) {
  const bool t0 = x > -0.2928f && x < 0.4142f;
  const uint t1 = uint(as_type<int>(x + 1.0f));
  const int t2 = int(t1 - 1060439283u) >> 23;
  const float t3 = float((t0 ? 0 : t2));
  const float t4 = (t0 ? x : as_type<float>(int(t1 - (uint(t2) << 23u))) - 1.0f);
  const float t5 = (((0.053426087f * t4 - 0.10916982f) * t4 + 0.12107853f) * t4 - 0.12549563f) * t4 + 0.14209639f;
  const float t6 = t4 * ((((t5 * t4 - 0.16659373f) * t4 + 0.20002222f) * t4 - 0.25000167f) * t4 + 0.33333313f);
  const uint t7 = as_type<uint>(t3 * 0.69314575f + (t4 + (t4 * t4 * (t6 - 0.5f) + t3 * 1.4286068e-06f))) | (as_type<uint>(x) & 2147483648u);
  const uint t8 = (as_type<uint>(x) == 2139095040u ? 2139095040u : (as_type<uint>(x) == 3212836864u ? 4286578688u : t7));
  const uint t9 = ((as_type<uint>(x) & 2147483647u) > 2139095040u || as_type<uint>(x) > 3212836864u ? 2143289344u : t8);
  return as_type<float>(t9);
}

[[max_total_threads_per_threadgroup(20)]]
kernel void k_activations(
    device const float *x [[buffer(0)]],
    device float *exp_x [[buffer(1)]],
    device float *tanh_x [[buffer(2)]],
    device float *erf_x [[buffer(3)]],
    device float *sin_x [[buffer(4)]],
    device float *cos_x [[buffer(5)]],
    device float *sigmoid_x [[buffer(6)]],
    device float *log1p_x [[buffer(7)]],
    uint3 local_id [[thread_position_in_threadgroup]]) {
  const int local_x = int(local_id.x);
  const int i = local_x;
  exp_x[i] = exp_f32(x[i]);
  tanh_x[i] = tanh_f32(x[i]);
  erf_x[i] = erf_f32(x[i]);
  sin_x[i] = sin_f32(x[i]);
  cos_x[i] = cos_f32(x[i]);
  sigmoid_x[i] = sigmoid_f32(x[i]);
  log1p_x[i] = log1p_f32(fabs(x[i]));
}
