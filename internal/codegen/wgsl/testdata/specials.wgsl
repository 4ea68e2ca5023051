// specials
@group(0) @binding(0) var<storage, read> x: array<f32, 4>;
@group(0) @binding(1) var<storage, read_write> picked: array<f32, 4>;
@group(0) @binding(2) var<storage, read_write> masked: array<f32, 4>;
@group(0) @binding(3) var<storage, read_write> smallest: array<f32, 4>;

fn from_bits(bits: u32) -> f32 {
  return bitcast<f32>(bits);
}

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_id) local_id: vec3<u32>) {
  let local_x = i32(local_id.x);
  let i = local_x;
  picked[i] = select(select(from_bits(0x7f800000u), from_bits(0x7fc00000u), i == 2), from_bits(0xff800000u), i == 1);
  let t0 = x[i];
  masked[i] = select(t0 * from_bits(0x7f800000u), 0.0, t0 == 0.0);
  smallest[i] = select(1.1754944e-38, 3.4028234663852886e+38, x[i] > 0.0);
}
