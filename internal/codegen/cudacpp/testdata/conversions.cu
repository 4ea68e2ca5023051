// conversions

template <class T, class S> static __device__ T to_whole(S x) {
  return x == x ? T(x) : T(0);
}

template <class T, class S> static __device__ T as_bits(S from) {
  union { S from; T to; } u;
  u.from = from;
  return u.to;
}

extern "C" __global__ void __launch_bounds__(9, 56) k_conversions(
    const float *__restrict__ x,
    int *to_i32_,
    unsigned *to_u32_,
    float *back,
    unsigned *bits) {
  const int local_x = int(threadIdx.x);
  const int i = local_x;
  to_i32_[i] = to_whole<int>(x[i]);
  to_u32_[i] = to_whole<unsigned>(x[i]);
  const float t0 = x[i];
  back[i] = float(to_whole<int>(t0)) + float(to_whole<unsigned>(t0));
  bits[i] = as_bits<unsigned>(x[i]);
}
