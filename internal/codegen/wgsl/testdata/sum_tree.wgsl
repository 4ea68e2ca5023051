// sum_tree
@group(0) @binding(0) var<storage, read> x: array<f32, 1500>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 5>;
var<workgroup> partial: array<f32, 128>;

@compute @workgroup_size(128)
fn main(@builtin(local_invocation_index) local_number: u32, @builtin(workgroup_id) group_id: vec3<u32>) {
  let group_x = i32(group_id.x);
  let local_index = i32(local_number);
  var sum = 0.0;
  for (var j = local_index; j < 300; j += 128) {
    sum += x[group_x * 300 + j];
  }
  partial[local_index] = sum;
  workgroupBarrier();
  if (local_index < 64) {
    partial[local_index] = partial[local_index] + partial[local_index + 64];
  }
  workgroupBarrier();
  if (local_index < 32) {
    partial[local_index] = partial[local_index] + partial[local_index + 32];
  }
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
  if (local_index == 0) {
    y[group_x] = partial[0];
  }
}
