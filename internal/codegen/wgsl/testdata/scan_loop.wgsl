// scan_loop
@group(0) @binding(0) var<storage, read> x: array<f32, 360>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 360>;

@compute @workgroup_size(8, 2, 1)
fn main(@builtin(local_invocation_index) local_number: u32, @builtin(workgroup_id) group_id: vec3<u32>) {
  let group_x = i32(group_id.x);
  let local_index = i32(local_number);
  let row = group_x * 16 + local_index;
  if (row < 40) {
    var sum = 0.0;
    for (var j = 0; j < 9; j++) {
      sum += x[row * 9 + j];
      y[row * 9 + j] = sum;
    }
  }
}
