// matmul_64
@group(0) @binding(0) var<storage, read> a: array<vec4<f32>, 1024>;
@group(0) @binding(1) var<storage, read> b: array<vec4<f32>, 2048>;
@group(0) @binding(2) var<storage, read_write> c: array<vec4<f32>, 2048>;
var<workgroup> tile_a: array<vec4<f32>, 256>;
var<workgroup> tile_b: array<vec4<f32>, 256>;

@compute @workgroup_size(16, 16, 1)
fn main(@builtin(local_invocation_id) local_id: vec3<u32>, @builtin(workgroup_id) group_id: vec3<u32>) {
  let group_x = i32(group_id.x);
  let local_x = i32(local_id.x);
  let local_y = i32(local_id.y);
  var acc_0 = vec4<f32>(0.0, 0.0, 0.0, 0.0);
  var acc_4 = vec4<f32>(0.0, 0.0, 0.0, 0.0);
  var acc_8 = vec4<f32>(0.0, 0.0, 0.0, 0.0);
  var acc_12 = vec4<f32>(0.0, 0.0, 0.0, 0.0);
  for (var tile = 0; tile < 4; tile++) {
    let t0 = local_y * 16 + local_x;
    let v0 = a[min(t0 / 4, 63) * 16 + tile * 4 + t0 % 4];
    tile_a[local_y * 16 + local_x] = v0;
    let t1 = local_y * 16 + local_x;
    let v1 = b[(tile * 16 + t1 / 16) * 32 + group_x * 16 + t1 % 16];
    tile_b[local_y * 16 + local_x] = v1;
    workgroupBarrier();
    for (var q = 0; q < 4; q++) {
      let v2 = tile_b[q * 4 * 16 + local_x];
      let v3 = tile_b[(q * 4 + 1) * 16 + local_x];
      let v4 = tile_b[(q * 4 + 2) * 16 + local_x];
      let v5 = tile_b[(q * 4 + 3) * 16 + local_x];
      let v6 = tile_a[local_y * 4 * 4 + q];
      acc_0 = acc_0 + v6.x * v2 + v6.y * v3 + v6.z * v4 + v6.w * v5;
      let v7 = tile_a[(local_y * 4 + 1) * 4 + q];
      acc_4 = acc_4 + v7.x * v2 + v7.y * v3 + v7.z * v4 + v7.w * v5;
      let v8 = tile_a[(local_y * 4 + 2) * 4 + q];
      acc_8 = acc_8 + v8.x * v2 + v8.y * v3 + v8.z * v4 + v8.w * v5;
      let v9 = tile_a[(local_y * 4 + 3) * 4 + q];
      acc_12 = acc_12 + v9.x * v2 + v9.y * v3 + v9.z * v4 + v9.w * v5;
    }
    workgroupBarrier();
  }
  let row_0 = local_y * 4;
  if (row_0 < 64) {
    c[row_0 * 32 + group_x * 16 + local_x] = acc_0;
  }
  let row_1 = local_y * 4 + 1;
  if (row_1 < 64) {
    c[row_1 * 32 + group_x * 16 + local_x] = acc_4;
  }
  let row_2 = local_y * 4 + 2;
  if (row_2 < 64) {
    c[row_2 * 32 + group_x * 16 + local_x] = acc_8;
  }
  let row_3 = local_y * 4 + 3;
  if (row_3 < 64) {
    c[row_3 * 32 + group_x * 16 + local_x] = acc_12;
  }
}
