// gather_checked
@group(0) @binding(0) var<storage, read> x: array<i32, 100>;
@group(0) @binding(1) var<storage, read> table: array<f32, 10>;
@group(0) @binding(2) var<storage, read_write> y: array<f32, 100>;
@group(0) @binding(3) var<storage, read_write> status: array<atomic<u32>, 4>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_id) local_id: vec3<u32>, @builtin(workgroup_id) group_id: vec3<u32>) {
  let group_x = i32(group_id.x);
  let local_x = i32(local_id.x);
  let i = group_x * 32 + local_x;
  if (i < 100) {
    let k = x[i];
    let t0 = (k >= 0) & (k < 10);
    if (!t0) {
      atomicMax(&status[0], 7u);
    }
    y[i] = select(0.0, table[min(max(k, 0), 9)], t0);
  }
}
