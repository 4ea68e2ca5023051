@group(0) @binding(0) var<storage, read> label: array<i32, 4>;
@group(0) @binding(1) var<storage, read> free: array<i32, 4>;
@group(0) @binding(2) var<storage, read> table: array<f32, 4>;
@group(0) @binding(3) var<storage, read_write> picked: array<f32, 4>;
@group(0) @binding(4) var<storage, read_write> count: array<u32, 1>;
@group(0) @binding(5) var<storage, read_write> status: array<atomic<u32>, 4>;

var<workgroup> wrong: atomic<u32>;

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
  let at = free[i];
  if (at < 0 || at >= 4) {
    atomicStore(&wrong, 1u);
    atomicStore(&status[0], 7u);
    atomicStore(&status[1], i);
    atomicStore(&status[2], u32(at));
    picked[i] = 0.0;
  } else {
    picked[i] = table[label[i]] + table[at];
  }
  workgroupBarrier();
  if (i == 0u && atomicLoad(&wrong) == 0u && atomicLoad(&status[0]) == 0u) {
    count[0] += 1u;
  }
}
