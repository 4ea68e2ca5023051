// counted_state
@group(0) @binding(0) var<storage, read> x: array<i32, 64>;
@group(0) @binding(1) var<storage, read_write> state: array<atomic<i32>, 2>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_id) local_id: vec3<u32>, @builtin(workgroup_id) group_id: vec3<u32>) {
  let group_x = i32(group_id.x);
  let local_x = i32(local_id.x);
  let i = group_x * 32 + local_x;
  if ((atomicLoad(&state[1]) < 0) & (x[i] > 50)) {
    atomicAdd(&state[0], 1);
  }
}
