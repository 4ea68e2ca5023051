// relu_vec4
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>, 256>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>, 256>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_id) local_id: vec3<u32>, @builtin(workgroup_id) group_id: vec3<u32>) {
  let group_x = i32(group_id.x);
  let local_x = i32(local_id.x);
  let i = group_x * 64 + local_x;
  let v0 = x[i];
  y[i] = vec4<f32>(select(0.0, v0.x, v0.x > 0.0), select(0.0, v0.y, v0.y > 0.0), select(0.0, v0.z, v0.z > 0.0), select(0.0, v0.w, v0.w > 0.0));
}
