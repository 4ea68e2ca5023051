enable f16;
// half_precision
@group(0) @binding(0) var<storage, read> x: array<vec4<f16>, 4>;
@group(0) @binding(1) var<storage, read_write> line: array<vec4<f16>, 4>;
@group(0) @binding(2) var<storage, read_write> wide: array<f32, 16>;

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_id) local_id: vec3<u32>) {
  let local_x = i32(local_id.x);
  let i = local_x;
  let v0 = x[i];
  line[i] = vec4<f16>(v0.x * 0.5h - 1.0h, v0.y * 0.5h - 1.0h, v0.z * 0.5h - 1.0h, v0.w * 0.5h - 1.0h);
  wide[i * 4] = f32(v0.x * 0.5h - 1.0h) / 3.0;
  wide[i * 4 + 1] = f32(v0.y * 0.5h - 1.0h) / 3.0;
  wide[i * 4 + 2] = f32(v0.z * 0.5h - 1.0h) / 3.0;
  wide[i * 4 + 3] = f32(v0.w * 0.5h - 1.0h) / 3.0;
}
