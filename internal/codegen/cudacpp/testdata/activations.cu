// activations

static __device__ float inverse_of(float x) {
  float y;
#if __CUDA_ARCH__ >= 530
  asm("{ .reg .f32 near, error; rcp.approx.ftz.f32 near, %1; fma.rn.f32 error, %1, near, 0fbf800000; neg.f32 error, error; fma.rn.f32 %0, near, error, near; }" : "=f"(y) : "f"(x));
#else
  y = 1.0f / x;
#endif
  return y;
}

static __device__ float sigmoid_of(float x) {
  const float t = expf(-fabsf(x));
  const float y = inverse_of(1.0f + t);
  return (x < 0.0f ? t * y : y);
}

extern "C" __global__ void __launch_bounds__(20, 25) k_activations(
    const float *__restrict__ x,
    float *exp_x,
    float *tanh_x,
    float *erf_x,
    float *sin_x,
    float *cos_x,
    float *sigmoid_x,
    float *log1p_x) {
  const int local_x = int(threadIdx.x);
  const int i = local_x;
  exp_x[i] = expf(x[i]);
  tanh_x[i] = tanhf(x[i]);
  erf_x[i] = erff(x[i]);
  sin_x[i] = sinf(x[i]);
  cos_x[i] = cosf(x[i]);
  sigmoid_x[i] = sigmoid_of(x[i]);
  log1p_x[i] = log1pf(fabsf(x[i]));
}
