@group(0) @binding(0) var<storage, read> loss: array<f32, 1>;
@group(0) @binding(1) var<storage, read_write> history: array<f32, 8>;
@group(0) @binding(2) var<storage, read_write> count: array<u32, 1>;
@group(0) @binding(3) var<storage, read_write> status: array<atomic<u32>, 4>;

@compute @workgroup_size(1)
fn main() {
  if (atomicLoad(&status[0]) == 0u) {
    history[count[0] % 8u] = loss[0];
    count[0] += 1u;
  }
}
