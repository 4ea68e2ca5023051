// matmul_32
@group(0) @binding(0) var<storage, read> a: array<vec4<f32>, 600>;
@group(0) @binding(1) var<storage, read> b: array<vec4<f32>, 768>;
@group(0) @binding(2) var<storage, read_write> c: array<vec4<f32>, 800>;
var<workgroup> tile_a: array<vec4<f32>, 128>;
var<workgroup> tile_b: array<vec4<f32>, 128>;

@compute @workgroup_size(8, 16, 1)
fn main(@builtin(local_invocation_id) local_id: vec3<u32>, @builtin(workgroup_id) group_id: vec3<u32>) {
  let group_x = i32(group_id.x);
  let group_y = i32(group_id.y);
  let local_x = i32(local_id.x);
  let local_y = i32(local_id.y);
  var acc_0 = vec4<f32>(0.0, 0.0, 0.0, 0.0);
  var acc_4 = vec4<f32>(0.0, 0.0, 0.0, 0.0);
  for (var tile = 0; tile < 3; tile++) {
    let t0 = local_y * 8 + local_x;
    let v0 = a[min(group_y * 32 + t0 / 4, 49) * 12 + tile * 4 + t0 % 4];
    tile_a[local_y * 8 + local_x] = v0;
    let t1 = local_y * 8 + local_x;
    let v1 = b[(tile * 16 + t1 / 8) * 16 + group_x * 8 + t1 % 8];
    tile_b[local_y * 8 + local_x] = v1;
    workgroupBarrier();
    for (var q = 0; q < 4; q++) {
      let v2 = tile_b[q * 4 * 8 + local_x];
      let v3 = tile_b[(q * 4 + 1) * 8 + local_x];
      let v4 = tile_b[(q * 4 + 2) * 8 + local_x];
      let v5 = tile_b[(q * 4 + 3) * 8 + local_x];
      let v6 = tile_a[local_y * 2 * 4 + q];
      acc_0 = acc_0 + v6.x * v2 + v6.y * v3 + v6.z * v4 + v6.w * v5;
      let v7 = tile_a[(local_y * 2 + 1) * 4 + q];
      acc_4 = acc_4 + v7.x * v2 + v7.y * v3 + v7.z * v4 + v7.w * v5;
    }
    workgroupBarrier();
  }
  let row_0 = group_y * 32 + local_y * 2;
  if (row_0 < 50) {
    c[row_0 * 16 + group_x * 8 + local_x] = acc_0;
  }
  let row_1 = group_y * 32 + (local_y * 2 + 1);
  if (row_1 < 50) {
    c[row_1 * 16 + group_x * 8 + local_x] = acc_4;
  }
}
