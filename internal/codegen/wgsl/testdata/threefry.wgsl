// threefry
@group(0) @binding(0) var<storage, read_write> y0: array<u32, 32>;
@group(0) @binding(1) var<storage, read_write> y1: array<u32, 32>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_id) local_id: vec3<u32>) {
  let local_x = i32(local_id.x);
  let i = local_x;
  let t0 = u32(i) + 0x9e3779b9u;
  let t1 = 0xef3733c6u ^ t0;
  let t2 = t0 + t1;
  let t3 = ((t1 << 15u) | (t1 >> 17u)) ^ t2;
  let t4 = t2 + t3;
  y0[i] = t4 + (((t3 << 26u) | (t3 >> 6u)) ^ t4);
  let t5 = u32(i) + 0x9e3779b9u;
  let t6 = 0xef3733c6u ^ t5;
  let t7 = t5 + t6;
  let t8 = ((t6 << 15u) | (t6 >> 17u)) ^ t7;
  let t9 = t7 + t8;
  let t10 = ((t8 << 26u) | (t8 >> 6u)) ^ t9;
  y1[i] = ((t10 << 6u) | (t10 >> 26u)) ^ (t9 + t10);
}
