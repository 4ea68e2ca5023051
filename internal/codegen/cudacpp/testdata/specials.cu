// specials

template <class T, class S> static __device__ T as_bits(S from) {
  union { S from; T to; } u;
  u.from = from;
  return u.to;
}

extern "C" __global__ void __launch_bounds__(4, 128) k_specials(
    const float *__restrict__ x,
    float *picked,
    float *masked,
    float *smallest) {
  const int local_x = int(threadIdx.x);
  const int i = local_x;
  picked[i] = (i == 1 ? as_bits<float>(0xff800000u) : (i == 2 ? as_bits<float>(0x7fc00000u) : as_bits<float>(0x7f800000u)));
  const float t0 = x[i];
  masked[i] = (t0 == 0.0f ? 0.0f : t0 * as_bits<float>(0x7f800000u));
  smallest[i] = (x[i] > 0.0f ? 3.4028235e+38f : 1.1754944e-38f);
}
