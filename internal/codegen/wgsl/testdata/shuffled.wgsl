enable subgroups;
enable subgroup_size_control;
requires subgroup_id;
// shuffled
@group(0) @binding(0) var<storage, read> x: array<f32, 64>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 64>;

@compute @workgroup_size(64) @subgroup_size(32)
fn main(@builtin(subgroup_id) subgroup_number: u32, @builtin(subgroup_invocation_id) subgroup_lane: u32) {
  let local_number = min(subgroup_number * 32u + subgroup_lane, 63u);
  let local_x = i32(local_number % 16u);
  let local_y = i32(local_number / 16u);
  let x0 = x[local_y * 16 + local_x];
  let other0 = subgroupShuffleXor(x0, 1u);
  let other1 = subgroupShuffleXor(x0, 2u);
  let other2 = subgroupShuffleXor(x0, 31u);
  y[local_y * 16 + local_x] = ((x0 * 2.0 + other0) * 2.0 + other1) * 2.0 + other2;
}
