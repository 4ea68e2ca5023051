// scale_tail
@group(0) @binding(0) var<storage, read> x: array<f32, 1000>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 1000>;

struct Run {
  scalar0: f32,
}
@group(1) @binding(0) var<uniform> run: Run;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_id) local_id: vec3<u32>, @builtin(workgroup_id) group_id: vec3<u32>) {
  let group_x = i32(group_id.x);
  let local_x = i32(local_id.x);
  let scalar0 = run.scalar0;
  let i = group_x * 64 + local_x;
  if (i < 1000) {
    y[i] = x[i] * scalar0 + 0.5;
  }
}
