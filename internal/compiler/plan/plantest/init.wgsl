@group(0) @binding(0) var<storage, read> table: array<f32, 4>;
@group(0) @binding(1) var<storage, read_write> w: array<f32, 3>;

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
  if (i < 3u) {
    w[i] = 0.5 * table[i];
  }
}
