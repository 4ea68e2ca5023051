// activations
@group(0) @binding(0) var<storage, read> x: array<f32, 20>;
@group(0) @binding(1) var<storage, read_write> exp_x: array<f32, 20>;
@group(0) @binding(2) var<storage, read_write> tanh_x: array<f32, 20>;
@group(0) @binding(3) var<storage, read_write> erf_x: array<f32, 20>;
@group(0) @binding(4) var<storage, read_write> sin_x: array<f32, 20>;
@group(0) @binding(5) var<storage, read_write> cos_x: array<f32, 20>;
@group(0) @binding(6) var<storage, read_write> sigmoid_x: array<f32, 20>;
@group(0) @binding(7) var<storage, read_write> log1p_x: array<f32, 20>;

fn exp_f32(x: f32) -> f32 {
  let t0 = select(-104.0, x, x > -104.0);
  let t1 = select(89.0, t0, t0 < 89.0);
  let t2 = t1 * 1.442695 + 1.2582912e+07;
  let t3 = bitcast<i32>(t2) - 1262485504;
  let t4 = f32(t3);
  let t5 = bitcast<f32>(bitcast<u32>(t1 - t4 * 0.69314575) & (bitcast<u32>(t2) | 0xbfffffffu)) - t4 * 1.4286068e-06;
  let t6 = t3 < -100;
  let t7 = (((0.00020061275 * t5 + 0.0014001469) * t5 + 0.008332935) * t5 + 0.04166517) * t5 + 0.16666669;
  let t8 = bitcast<i32>(t5 + t5 * (t5 * (t7 * t5 + 0.50000006)) + 1.0) + (select(t3, t3 + 64, t6) << 23u);
  let t9 = select(bitcast<u32>(bitcast<f32>(t8) * select(1.0, 5.421011e-20, t6)), 0x7f800000u, bitcast<i32>(x) > 1118925335);
  return bitcast<f32>(select(t9, bitcast<u32>(x), (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u));
}

fn tanh_f32(x: f32) -> f32 {
  let t0 = abs(x);
  let t1 = t0 * t0;
  let t2 = select(10.0, t0, t0 < 10.0) * 2.0;
  let t3 = t2 * 1.442695 + 1.2582912e+07;
  let t4 = bitcast<i32>(t3) - 1262485504;
  let t5 = f32(t4);
  let t6 = bitcast<f32>(bitcast<u32>(t2 - t5 * 0.69314575) & (bitcast<u32>(t3) | 0xbfffffffu)) - t5 * 1.4286068e-06;
  let t7 = t1 * ((((-0.005927171 * t1 + 0.020826304) * t1 - 0.053794) * t1 + 0.13332064) * t1 - 0.33333305);
  let t8 = (((0.00020061275 * t6 + 0.0014001469) * t6 + 0.008332935) * t6 + 0.04166517) * t6 + 0.16666669;
  let t9 = bitcast<f32>(bitcast<i32>(t6 + t6 * (t6 * (t8 * t6 + 0.50000006)) + 1.0) + (t4 << 23u)) + 1.0;
  let t10 = bitcast<u32>(select(1.0 - 2.0 / t9, t0 + t0 * t7, t0 < 0.6)) | (bitcast<u32>(x) & 0x80000000u);
  return bitcast<f32>(select(t10, bitcast<u32>(x), (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u));
}

fn erf_f32(x: f32) -> f32 {
  let t0 = abs(x);
  let t1 = t0 * t0;
  let t2 = select(3.95, t0, t0 < 3.95);
  let t3 = (((0.00028269368 * t2 - 0.0043905396) * t2 + 0.032066934) * t2 - 0.14994192) * t2 - 0.9192595;
  let t4 = (t3 * t2 - 1.6268921) * t2 - 0.00028230366;
  let t5 = bitcast<i32>(t4 + 1.2582912e+07) - 1262485504;
  let t6 = t4 - f32(t5);
  let t7 = (((-0.00059954793 * t1 + 0.0049942047) * t1 - 0.026767438) * t1 + 0.11281845) * t1 - 0.37612498;
  let t8 = (((0.00015487339 * t6 + 0.0013410673) * t6 + 0.009617883) * t6 + 0.05550289) * t6 + 0.24022654;
  let t9 = select(1.0 - bitcast<f32>(bitcast<i32>(t6 * (t8 * t6 + 0.69314724) + 1.0) + (t5 << 23u)), t0 + t0 * (t7 * t1 + 0.12837915), t0 < 0.92);
  let t10 = select(bitcast<u32>(t9) | (bitcast<u32>(x) & 0x80000000u), bitcast<u32>(x), (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u);
  return bitcast<f32>(t10);
}

fn sin_f32(x: f32) -> f32 {
  let t0 = abs(x);
  let t1 = t0 < 0.7853982;
  let t2 = bitcast<u32>(t0);
  let t3 = (t2 & 0x7fffffu) | 0x800000u;
  let t4 = (t2 >> 23u) - 120u;
  let t5 = t4 < 32u;
  let t6 = t4 < 64u;
  let t7 = t4 < 96u;
  let t8 = t4 < 128u;
  let t9 = t4 & 31u;
  let t10 = select(select(select(select(0xdb629599u, 0xf534ddc0u, t8), 0xfc2757d1u, t7), 0x4e441529u, t6), 0xa2f9836eu, t5);
  let t11 = 31u - t9;
  let t12 = select(select(select(select(0x3c439041u, 0xdb629599u, t8), 0xf534ddc0u, t7), 0xfc2757d1u, t6), 0x4e441529u, t5);
  let t13 = (t10 << t9) | ((t12 >> 1u) >> t11);
  let t14 = select(select(select(select(0xfe5163abu, 0x3c439041u, t8), 0xdb629599u, t7), 0xf534ddc0u, t6), 0xfc2757d1u, t5);
  let t15 = ((t3 >> 8u) * (((t12 << t9) | ((t14 >> 1u) >> t11)) >> 16u)) >> 8u;
  let t16 = t3 * t13 + t15;
  let t17 = select(select(select(select(0xf534ddc0u, 0xfc2757d1u, t8), 0x4e441529u, t7), 0xa2f9836eu, t6), 0u, t5);
  let t18 = ((((t3 * (t13 & 255u)) >> 8u) + t3 * ((t13 >> 8u) & 255u)) >> 8u) + t3 * ((t13 >> 16u) & 255u);
  let t19 = t3 * ((t17 << t9) | ((t10 >> 1u) >> t11)) + (((t18 >> 8u) + t3 * ((t13 >> 24u) & 255u)) >> 8u);
  let t20 = t19 + select(0u, 1u, t16 < t15) + 0x20000000u;
  let t21 = select(t20 >> 30u, 0u, t1);
  let t22 = (f32(bitcast<i32>(t20 & 0x3fffffffu) - 536870912) + f32(t16) * 2.3283064e-10) * 1.4629181e-09;
  let t23 = select(t22, t0, t1);
  let t24 = t23 * t23;
  let t25 = select(t23 + t23 * (t24 * ((-0.00019530271 * t24 + 0.008332258) * t24 - 0.16666655)), 1.0 + t24 * (t24 * ((2.4477922e-05 * t24 - 0.0013887704) * t24 + 0.041666653) - 0.5), (t21 & 1u) != 0u);
  let t26 = select(0x7fc00000u, bitcast<u32>(t25) ^ (((t21 << 30u) ^ bitcast<u32>(x)) & 0x80000000u), (bitcast<u32>(x) & 0x7fffffffu) < 0x7f800000u);
  return bitcast<f32>(t26);
}

fn cos_f32(x: f32) -> f32 {
  let t0 = abs(x);
  let t1 = t0 < 0.7853982;
  let t2 = bitcast<u32>(t0);
  let t3 = (t2 & 0x7fffffu) | 0x800000u;
  let t4 = (t2 >> 23u) - 120u;
  let t5 = t4 < 32u;
  let t6 = t4 < 64u;
  let t7 = t4 < 96u;
  let t8 = t4 < 128u;
  let t9 = t4 & 31u;
  let t10 = select(select(select(select(0xdb629599u, 0xf534ddc0u, t8), 0xfc2757d1u, t7), 0x4e441529u, t6), 0xa2f9836eu, t5);
  let t11 = 31u - t9;
  let t12 = select(select(select(select(0x3c439041u, 0xdb629599u, t8), 0xf534ddc0u, t7), 0xfc2757d1u, t6), 0x4e441529u, t5);
  let t13 = (t10 << t9) | ((t12 >> 1u) >> t11);
  let t14 = select(select(select(select(0xfe5163abu, 0x3c439041u, t8), 0xdb629599u, t7), 0xf534ddc0u, t6), 0xfc2757d1u, t5);
  let t15 = ((t3 >> 8u) * (((t12 << t9) | ((t14 >> 1u) >> t11)) >> 16u)) >> 8u;
  let t16 = t3 * t13 + t15;
  let t17 = select(select(select(select(0xf534ddc0u, 0xfc2757d1u, t8), 0x4e441529u, t7), 0xa2f9836eu, t6), 0u, t5);
  let t18 = ((((t3 * (t13 & 255u)) >> 8u) + t3 * ((t13 >> 8u) & 255u)) >> 8u) + t3 * ((t13 >> 16u) & 255u);
  let t19 = t3 * ((t17 << t9) | ((t10 >> 1u) >> t11)) + (((t18 >> 8u) + t3 * ((t13 >> 24u) & 255u)) >> 8u);
  let t20 = t19 + select(0u, 1u, t16 < t15) + 0x20000000u;
  let t21 = select(t20 >> 30u, 0u, t1);
  let t22 = (f32(bitcast<i32>(t20 & 0x3fffffffu) - 536870912) + f32(t16) * 2.3283064e-10) * 1.4629181e-09;
  let t23 = select(t22, t0, t1);
  let t24 = t23 * t23;
  let t25 = select(1.0 + t24 * (t24 * ((2.4477922e-05 * t24 - 0.0013887704) * t24 + 0.041666653) - 0.5), t23 + t23 * (t24 * ((-0.00019530271 * t24 + 0.008332258) * t24 - 0.16666655)), (t21 & 1u) != 0u);
  let t26 = select(0x7fc00000u, bitcast<u32>(t25) ^ (((t21 + 1u) << 30u) & 0x80000000u), (bitcast<u32>(x) & 0x7fffffffu) < 0x7f800000u);
  return bitcast<f32>(t26);
}

fn sigmoid_f32(x: f32) -> f32 {
  let t0 = abs(x);
  let t1 = -select(104.0, t0, t0 < 104.0);
  let t2 = t1 * 1.442695 + 1.2582912e+07;
  let t3 = bitcast<i32>(t2) - 1262485504;
  let t4 = f32(t3);
  let t5 = bitcast<f32>(bitcast<u32>(t1 - t4 * 0.69314575) & (bitcast<u32>(t2) | 0xbfffffffu)) - t4 * 1.4286068e-06;
  let t6 = t3 < -100;
  let t7 = (((0.00020061275 * t5 + 0.0014001469) * t5 + 0.008332935) * t5 + 0.04166517) * t5 + 0.16666669;
  let t8 = bitcast<i32>(t5 + t5 * (t5 * (t7 * t5 + 0.50000006)) + 1.0) + (select(t3, t3 + 64, t6) << 23u);
  let t9 = bitcast<f32>(t8) * select(1.0, 5.421011e-20, t6);
  let t10 = 1.0 / (t9 + 1.0);
  let t11 = select(bitcast<u32>(select(t10, t9 * t10, x < 0.0)), bitcast<u32>(x), (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u);
  return bitcast<f32>(t11);
}

fn log1p_f32(x: f32) -> f32 {
  let t0 = (x > -0.2928) & (x < 0.4142);
  let t1 = bitcast<i32>(x + 1.0);
  let t2 = (t1 - 1060439283) >> 23u;
  let t3 = f32(select(t2, 0, t0));
  let t4 = select(bitcast<f32>(t1 - (t2 << 23u)) - 1.0, x, t0);
  let t5 = ((((0.053426087 * t4 - 0.10916982) * t4 + 0.12107853) * t4 - 0.12549563) * t4 + 0.14209639) * t4;
  let t6 = t4 * t4 * (t4 * ((((t5 - 0.16659373) * t4 + 0.20002222) * t4 - 0.25000167) * t4 + 0.33333313) - 0.5);
  let t7 = bitcast<u32>(t3 * 0.69314575 + (t4 + (t6 + t3 * 1.4286068e-06))) | (bitcast<u32>(x) & 0x80000000u);
  let t8 = select(select(t7, 0xff800000u, bitcast<u32>(x) == 0xbf800000u), 0x7f800000u, bitcast<u32>(x) == 0x7f800000u);
  let t9 = select(t8, 0x7fc00000u, ((bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u) | (bitcast<u32>(x) > 0xbf800000u));
  return bitcast<f32>(t9);
}

@compute @workgroup_size(20)
fn main(@builtin(local_invocation_id) local_id: vec3<u32>) {
  let local_x = i32(local_id.x);
  let i = local_x;
  exp_x[i] = exp_f32(x[i]);
  tanh_x[i] = tanh_f32(x[i]);
  erf_x[i] = erf_f32(x[i]);
  sin_x[i] = sin_f32(x[i]);
  cos_x[i] = cos_f32(x[i]);
  sigmoid_x[i] = sigmoid_f32(x[i]);
  log1p_x[i] = log1p_f32(abs(x[i]));
}
