// softmax_row
@group(0) @binding(0) var<storage, read> x: array<f32, 210>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 210>;
var<workgroup> partial: array<f32, 32>;

fn max_f32(x: f32, y: f32) -> f32 {
  let t0 = select(select(bitcast<u32>(y), bitcast<u32>(x), x > y), bitcast<u32>(x), (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u);
  return bitcast<f32>(select(t0, bitcast<u32>(y), (bitcast<u32>(y) & 0x7fffffffu) > 0x7f800000u));
}

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

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) local_number: u32, @builtin(workgroup_id) group_id: vec3<u32>) {
  let group_x = i32(group_id.x);
  let local_index = i32(local_number);
  var top = -3.4028234663852886e+38;
  for (var j = local_index; j < 70; j += 32) {
    top = max_f32(top, x[group_x * 70 + j]);
  }
  partial[local_index] = top;
  workgroupBarrier();
  if (local_index < 16) {
    partial[local_index] = max_f32(partial[local_index], partial[local_index + 16]);
  }
  workgroupBarrier();
  if (local_index < 8) {
    partial[local_index] = max_f32(partial[local_index], partial[local_index + 8]);
  }
  workgroupBarrier();
  if (local_index < 4) {
    partial[local_index] = max_f32(partial[local_index], partial[local_index + 4]);
  }
  workgroupBarrier();
  if (local_index < 2) {
    partial[local_index] = max_f32(partial[local_index], partial[local_index + 2]);
  }
  workgroupBarrier();
  if (local_index < 1) {
    partial[local_index] = max_f32(partial[local_index], partial[local_index + 1]);
  }
  workgroupBarrier();
  let row_top = partial[0];
  var sum = 0.0;
  for (var j = local_index; j < 70; j += 32) {
    sum += exp_f32(x[group_x * 70 + j] - row_top);
  }
  workgroupBarrier();
  partial[local_index] = sum;
  workgroupBarrier();
  if (local_index < 16) {
    partial[local_index] = partial[local_index] + partial[local_index + 16];
  }
  workgroupBarrier();
  if (local_index < 8) {
    partial[local_index] = partial[local_index] + partial[local_index + 8];
  }
  workgroupBarrier();
  if (local_index < 4) {
    partial[local_index] = partial[local_index] + partial[local_index + 4];
  }
  workgroupBarrier();
  if (local_index < 2) {
    partial[local_index] = partial[local_index] + partial[local_index + 2];
  }
  workgroupBarrier();
  if (local_index < 1) {
    partial[local_index] = partial[local_index] + partial[local_index + 1];
  }
  workgroupBarrier();
  let scale = 1.0 / partial[0];
  for (var j = local_index; j < 70; j += 32) {
    let t0 = group_x * 70 + j;
    y[t0] = exp_f32(x[t0] - row_top) * scale;
  }
}
