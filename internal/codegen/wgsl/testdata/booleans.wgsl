// booleans
@group(0) @binding(0) var<storage, read> p: array<u32, 16>;
@group(0) @binding(1) var<storage, read> q: array<u32, 16>;
@group(0) @binding(2) var<storage, read_write> both: array<u32, 16>;
@group(0) @binding(3) var<storage, read_write> differ: array<u32, 16>;
var<workgroup> all_q: array<u32, 16>;

@compute @workgroup_size(16)
fn main(@builtin(local_invocation_id) local_id: vec3<u32>) {
  let local_x = i32(local_id.x);
  var mine: array<u32, 2>;
  let i = local_x;
  all_q[i] = u32(q[i] != 0u);
  mine[i % 2] = u32(p[i] != 0u);
  workgroupBarrier();
  let mine_p = mine[i % 2] != 0u;
  both[i] = u32(mine_p & (!(q[i] != 0u)));
  differ[i] = u32(mine_p != (all_q[(i + 1) % 16] != 0u));
}
