// relu_vec4

extern "C" __global__ void __launch_bounds__(64, 8) k_relu_vec4(
    const float4 *__restrict__ x,
    float4 *y) {
  const int group_x = int(blockIdx.x);
  const int local_x = int(threadIdx.x);
  const int i = group_x * 64 + local_x;
  const float4 v0 = x[i];
  y[i] = make_float4((v0.x > 0.0f ? v0.x : 0.0f), (v0.y > 0.0f ? v0.y : 0.0f), (v0.z > 0.0f ? v0.z : 0.0f), (v0.w > 0.0f ? v0.w : 0.0f));
}
