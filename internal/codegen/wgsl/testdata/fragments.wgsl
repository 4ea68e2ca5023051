enable subgroups;
enable subgroup_size_control;
enable chromium_experimental_subgroup_matrix;
requires subgroup_id;
// fragments
@group(0) @binding(0) var<storage, read> x: array<f32, 256>;
@group(0) @binding(1) var<storage, read> y: array<f32, 384>;
@group(0) @binding(2) var<storage, read_write> z: array<f32, 384>;
var<workgroup> left: array<f32, 256>;
var<workgroup> right: array<f32, 384>;
var<workgroup> sums: array<f32, 448>;

@compute @workgroup_size(64) @subgroup_size(32)
fn main(@builtin(subgroup_id) subgroup_number: u32, @builtin(subgroup_invocation_id) subgroup_lane: u32) {
  let local_number = min(subgroup_number * 32u + subgroup_lane, 63u);
  let local_x = i32(local_number);
  let subgroup_index = i32(subgroup_number);
  for (var at = local_x; at < 256; at += 64) {
    left[at] = x[at];
  }
  for (var at = local_x; at < 384; at += 64) {
    right[at % 24 * 16 + at / 24] = y[at];
  }
  workgroupBarrier();
  var d0 = subgroup_matrix_result<f32, 8, 8>();
  var d1 = subgroup_matrix_result<f32, 8, 8>();
  var d2 = subgroup_matrix_result<f32, 8, 8>();
  for (var k = 0; k < 16; k += 8) {
    let a = subgroupMatrixLoad<subgroup_matrix_left<f32, 8, 8>, row_major>(&left, u32(subgroup_index * 8 * 16 + k), 16u);
    let b0 = subgroupMatrixLoad<subgroup_matrix_right<f32, 8, 8>, col_major>(&right, u32(k), 16u);
    d0 = subgroupMatrixMultiplyAccumulate(a, b0, d0);
    let b1 = subgroupMatrixLoad<subgroup_matrix_right<f32, 8, 8>, col_major>(&right, u32(128 + k), 16u);
    d1 = subgroupMatrixMultiplyAccumulate(a, b1, d1);
    let b2 = subgroupMatrixLoad<subgroup_matrix_right<f32, 8, 8>, col_major>(&right, u32(256 + k), 16u);
    d2 = subgroupMatrixMultiplyAccumulate(a, b2, d2);
  }
  subgroupMatrixStore<row_major>(&sums, u32(subgroup_index * 8 * 28), d0, 28u);
  subgroupMatrixStore<row_major>(&sums, u32(subgroup_index * 8 * 28 + 8), d1, 28u);
  subgroupMatrixStore<row_major>(&sums, u32(subgroup_index * 8 * 28 + 16), d2, 28u);
  workgroupBarrier();
  for (var at = local_x; at < 384; at += 64) {
    z[at] = sums[at / 24 * 28 + at % 24];
  }
}
