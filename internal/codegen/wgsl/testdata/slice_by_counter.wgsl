// slice_by_counter
@group(0) @binding(0) var<storage, read> x: array<f32, 80>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 16>;

struct Run {
  scalar0: u32,
  scalar1: i32,
}
@group(1) @binding(0) var<uniform> run: Run;
@group(1) @binding(1) var<uniform> repeat0: u32;
@group(1) @binding(2) var<uniform> repeat1: u32;

@compute @workgroup_size(16)
fn main(@builtin(local_invocation_id) local_id: vec3<u32>) {
  let counter1 = i32(repeat1);
  let local_x = i32(local_id.x);
  let scalar1 = run.scalar1;
  let i = local_x;
  y[i] = x[counter1 * 16 + i] * f32(scalar1);
}
