// histogram
@group(0) @binding(0) var<storage, read> x: array<i32, 512>;
@group(0) @binding(1) var<storage, read_write> count: array<atomic<u32>, 8>;
@group(0) @binding(2) var<storage, read_write> mark: array<f32, 8>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_id) local_id: vec3<u32>, @builtin(workgroup_id) group_id: vec3<u32>) {
  let group_x = i32(group_id.x);
  let local_x = i32(local_id.x);
  let i = group_x * 64 + local_x;
  let before = atomicAdd(&count[x[i]], 1u);
  if (before == 0u) {
    mark[x[i]] = 1.0;
  }
}
