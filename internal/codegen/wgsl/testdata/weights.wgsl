// weights
@group(0) @binding(0) var<storage, read> x: array<f32, 512>;
@group(0) @binding(1) var<storage, read> place: array<i32, 512>;
@group(0) @binding(2) var<storage, read_write> sum: array<atomic<u32>, 8>;
@group(0) @binding(3) var<storage, read_write> finite: array<atomic<u32>, 8>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_id) local_id: vec3<u32>, @builtin(workgroup_id) group_id: vec3<u32>) {
  let group_x = i32(group_id.x);
  let local_x = i32(local_id.x);
  let i = group_x * 64 + local_x;
  let t0 = 0.5 * x[i];
  var before: f32;
  {
    let spot = &sum[place[i]];
    var seen = atomicLoad(spot);
    loop {
      let swap = atomicCompareExchangeWeak(spot, seen, bitcast<u32>(bitcast<f32>(seen) + t0));
      if (swap.exchanged) { break; }
      seen = swap.old_value;
    }
    before = bitcast<f32>(seen);
  }
  if (abs(before) < 1e+30) {
    atomicAdd(&finite[place[i]], 1u);
  }
  if (abs(bitcast<f32>(atomicLoad(&sum[place[i]]))) < 1e+30) {
    let t1 = 0.5 * x[i];
    {
      let spot = &sum[place[i]];
      var seen = atomicLoad(spot);
      loop {
        let swap = atomicCompareExchangeWeak(spot, seen, bitcast<u32>(bitcast<f32>(seen) + t1));
        if (swap.exchanged) { break; }
        seen = swap.old_value;
      }
    }
  }
}
