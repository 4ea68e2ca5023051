// activations

static __device__ float sigmoid_f32(float x) {
  const float t0 = expf(-fabsf(x));
  const float t1 = 1.0f / (1.0f + t0);
  return (x < 0.0f ? t0 * t1 : t1);
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
  sigmoid_x[i] = sigmoid_f32(x[i]);
  log1p_x[i] = log1pf(fabsf(x[i]));
}
