// integers
@group(0) @binding(0) var<storage, read> a: array<i32, 10>;
@group(0) @binding(1) var<storage, read> b: array<i32, 10>;
@group(0) @binding(2) var<storage, read_write> quot: array<i32, 10>;
@group(0) @binding(3) var<storage, read_write> rest: array<i32, 10>;
@group(0) @binding(4) var<storage, read_write> floor_: array<i32, 10>;
@group(0) @binding(5) var<storage, read_write> modulo: array<i32, 10>;
@group(0) @binding(6) var<storage, read_write> shift: array<i32, 10>;
@group(0) @binding(7) var<storage, read_write> mixed: array<i32, 10>;

@compute @workgroup_size(10)
fn main(@builtin(local_invocation_id) local_id: vec3<u32>) {
  let local_x = i32(local_id.x);
  let i = local_x;
  let t0 = a[i];
  let t1 = b[i];
  quot[i] = t0 / select(t1, 1, (t1 == 0) | ((t1 == -1) & (t0 == i32(-2147483648))));
  let t2 = a[i];
  let t3 = b[i];
  rest[i] = t2 % select(t3, 1, (t3 == 0) | ((t3 == -1) & (t2 == i32(-2147483648))));
  let t4 = a[i];
  let t5 = b[i];
  let t6 = select(t5, 1, (t5 == 0) | ((t5 == -1) & (t4 == i32(-2147483648))));
  let t7 = t4 % t6;
  floor_[i] = t4 / t6 - i32((t7 != 0) & ((t7 < 0) != (t6 < 0)));
  let t8 = a[i] % 5;
  modulo[i] = t8 + select(0, 5, (t8 != 0) & ((t8 < 0) != false));
  let t9 = a[i];
  shift[i] = (t9 << 3u) ^ (t9 >> u32((b[i] & 31) & 31));
  let t10 = a[i];
  mixed[i] = countOneBits(t10) + ~max(t10, i32(-2147483648));
}
