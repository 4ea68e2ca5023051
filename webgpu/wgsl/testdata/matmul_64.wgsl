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
  var acc_0 = 0.0;
  var acc_1 = 0.0;
  var acc_2 = 0.0;
  var acc_3 = 0.0;
  var acc_4 = 0.0;
  var acc_5 = 0.0;
  var acc_6 = 0.0;
  var acc_7 = 0.0;
  var acc_8 = 0.0;
  var acc_9 = 0.0;
  var acc_10 = 0.0;
  var acc_11 = 0.0;
  var acc_12 = 0.0;
  var acc_13 = 0.0;
  var acc_14 = 0.0;
  var acc_15 = 0.0;
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
      acc_0 = acc_0 + v6.x * v2.x + v6.y * v3.x + v6.z * v4.x + v6.w * v5.x;
      acc_1 = acc_1 + v6.x * v2.y + v6.y * v3.y + v6.z * v4.y + v6.w * v5.y;
      acc_2 = acc_2 + v6.x * v2.z + v6.y * v3.z + v6.z * v4.z + v6.w * v5.z;
      acc_3 = acc_3 + v6.x * v2.w + v6.y * v3.w + v6.z * v4.w + v6.w * v5.w;
      let v7 = tile_a[(local_y * 4 + 1) * 4 + q];
      acc_4 = acc_4 + v7.x * v2.x + v7.y * v3.x + v7.z * v4.x + v7.w * v5.x;
      acc_5 = acc_5 + v7.x * v2.y + v7.y * v3.y + v7.z * v4.y + v7.w * v5.y;
      acc_6 = acc_6 + v7.x * v2.z + v7.y * v3.z + v7.z * v4.z + v7.w * v5.z;
      acc_7 = acc_7 + v7.x * v2.w + v7.y * v3.w + v7.z * v4.w + v7.w * v5.w;
      let v8 = tile_a[(local_y * 4 + 2) * 4 + q];
      acc_8 = acc_8 + v8.x * v2.x + v8.y * v3.x + v8.z * v4.x + v8.w * v5.x;
      acc_9 = acc_9 + v8.x * v2.y + v8.y * v3.y + v8.z * v4.y + v8.w * v5.y;
      acc_10 = acc_10 + v8.x * v2.z + v8.y * v3.z + v8.z * v4.z + v8.w * v5.z;
      acc_11 = acc_11 + v8.x * v2.w + v8.y * v3.w + v8.z * v4.w + v8.w * v5.w;
      let v9 = tile_a[(local_y * 4 + 3) * 4 + q];
      acc_12 = acc_12 + v9.x * v2.x + v9.y * v3.x + v9.z * v4.x + v9.w * v5.x;
      acc_13 = acc_13 + v9.x * v2.y + v9.y * v3.y + v9.z * v4.y + v9.w * v5.y;
      acc_14 = acc_14 + v9.x * v2.z + v9.y * v3.z + v9.z * v4.z + v9.w * v5.z;
      acc_15 = acc_15 + v9.x * v2.w + v9.y * v3.w + v9.z * v4.w + v9.w * v5.w;
    }
    workgroupBarrier();
  }
  let row_0 = local_y * 4;
  if (row_0 < 64) {
    c[row_0 * 32 + group_x * 16 + local_x] = vec4<f32>(acc_0, acc_1, acc_2, acc_3);
  }
  let row_1 = local_y * 4 + 1;
  if (row_1 < 64) {
    c[row_1 * 32 + group_x * 16 + local_x] = vec4<f32>(acc_4, acc_5, acc_6, acc_7);
  }
  let row_2 = local_y * 4 + 2;
  if (row_2 < 64) {
    c[row_2 * 32 + group_x * 16 + local_x] = vec4<f32>(acc_8, acc_9, acc_10, acc_11);
  }
  let row_3 = local_y * 4 + 3;
  if (row_3 < 64) {
    c[row_3 * 32 + group_x * 16 + local_x] = vec4<f32>(acc_12, acc_13, acc_14, acc_15);
  }
}
