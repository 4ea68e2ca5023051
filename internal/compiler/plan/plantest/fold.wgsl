@group(0) @binding(0) var<storage, read_write> folded: array<u32, 2>;
@group(1) @binding(1) var<uniform> i: u32;
@group(1) @binding(2) var<uniform> j: u32;

@compute @workgroup_size(1)
fn main() {
  folded[0] = 2u * folded[0] + i;
  folded[1] += 10u * i + j;
}
