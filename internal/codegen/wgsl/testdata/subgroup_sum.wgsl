enable subgroups;
// subgroup_sum
@group(0) @binding(0) var<storage, read> x: array<f32, 256>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 4>;
var<workgroup> partial: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local_number: u32, @builtin(workgroup_id) group_id: vec3<u32>, @builtin(subgroup_invocation_id) subgroup_lane: u32) {
  let group_x = i32(group_id.x);
  let lane = i32(subgroup_lane);
  let local_index = i32(local_number);
  let x0 = x[group_x * 64 + local_index];
  let part = subgroupAdd(x0);
  partial[local_index] = select(0.0, part, lane == 0);
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
