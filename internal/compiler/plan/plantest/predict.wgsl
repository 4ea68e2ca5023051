@group(0) @binding(0) var<storage, read> x: array<f32, 12>;
@group(0) @binding(1) var<storage, read> w: array<f32, 3>;
@group(0) @binding(2) var<storage, read_write> prediction: array<f32, 4>;

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) r: u32) {
  prediction[r] = x[3u * r] * w[0] + x[3u * r + 1u] * w[1] + x[3u * r + 2u] * w[2];
}
