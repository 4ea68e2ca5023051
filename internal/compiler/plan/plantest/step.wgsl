struct Scalars {
  rate: f32,
}

@group(0) @binding(0) var<storage, read> x: array<f32, 12>;
@group(0) @binding(1) var<storage, read> t: array<f32, 4>;
@group(0) @binding(2) var<storage, read_write> w: array<f32, 3>;
@group(0) @binding(3) var<storage, read_write> loss: array<f32, 1>;
@group(0) @binding(4) var<storage, read_write> status: array<atomic<u32>, 4>;
@group(1) @binding(0) var<uniform> scalars: Scalars;

@compute @workgroup_size(1)
fn main() {
  var sum = 0.0;
  var g = vec3<f32>(0.0);
  for (var r = 0u; r < 4u; r += 1u) {
    let row = vec3<f32>(x[3u * r], x[3u * r + 1u], x[3u * r + 2u]);
    let d = row.x * w[0] + row.y * w[1] + row.z * w[2] - t[r];
    sum += d * d;
    g += d * row;
  }
  loss[0] = 0.25 * sum;
  if (atomicLoad(&status[0]) == 0u) {
    w[0] -= scalars.rate * 0.5 * g.x;
    w[1] -= scalars.rate * 0.5 * g.y;
    w[2] -= scalars.rate * 0.5 * g.z;
  }
}
