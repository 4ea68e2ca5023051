// conversions
@group(0) @binding(0) var<storage, read> x: array<f32, 9>;
@group(0) @binding(1) var<storage, read_write> to_i32_: array<i32, 9>;
@group(0) @binding(2) var<storage, read_write> to_u32_: array<u32, 9>;
@group(0) @binding(3) var<storage, read_write> back: array<f32, 9>;
@group(0) @binding(4) var<storage, read_write> bits: array<u32, 9>;

fn convert_f32_i32(x: f32) -> i32 {
  let t0 = (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
  let t1 = x >= 2.1474836e+09;
  let t2 = x <= -2.1474836e+09;
  let t3 = select(select(i32(bitcast<f32>(select(bitcast<u32>(x), 0u, t2 | t1 | t0))), i32(-2147483648), t2), 2147483647, t1);
  return select(t3, 0, t0);
}

fn convert_f32_u32(x: f32) -> u32 {
  let t0 = (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
  let t1 = x >= 4.2949673e+09;
  let t2 = x <= 0.0;
  let t3 = select(select(u32(bitcast<f32>(select(bitcast<u32>(x), 0u, t2 | t1 | t0))), 0u, t2), 0xffffffffu, t1);
  return select(t3, 0u, t0);
}

@compute @workgroup_size(9)
fn main(@builtin(local_invocation_id) local_id: vec3<u32>) {
  let local_x = i32(local_id.x);
  let i = local_x;
  to_i32_[i] = convert_f32_i32(x[i]);
  to_u32_[i] = convert_f32_u32(x[i]);
  let t0 = x[i];
  back[i] = f32(convert_f32_i32(t0)) + f32(convert_f32_u32(t0));
  bits[i] = bitcast<u32>(x[i]);
}
