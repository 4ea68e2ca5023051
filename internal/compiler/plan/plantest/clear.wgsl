struct Scalars {
  unused: u32,
  seed: u32,
}

@group(0) @binding(0) var<storage, read_write> folded: array<u32, 2>;
@group(1) @binding(0) var<uniform> scalars: Scalars;

@compute @workgroup_size(1)
fn main() {
  folded[0] = scalars.seed;
  folded[1] = 0u;
}
