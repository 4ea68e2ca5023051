// wide_floats
typedef long long i64;

static __device__ double sigmoid_f64(double x) {
  const double t0 = exp(-fabs(x));
  const double t1 = 1.0 / (1.0 + t0);
  return (x < 0.0 ? t0 * t1 : t1);
}

template <class T, class S> static __device__ T to_whole(S x) {
  return x == x ? T(x) : T(0);
}

template <class T, class S> static __device__ T as_bits(S from) {
  union { S from; T to; } u;
  u.from = from;
  return u.to;
}

extern "C" __global__ void __launch_bounds__(9, 56) k_wide_floats(
    const double *__restrict__ x,
    double *tanh_x,
    double *gauss,
    double *sigmoid_x,
    double *top,
    double *narrow,
    double *whole,
    double *far) {
  const int local_x = int(threadIdx.x);
  const int i = local_x;
  tanh_x[i] = tanh(x[i]);
  const double t0 = x[i];
  gauss[i] = exp(-(t0 * t0));
  sigmoid_x[i] = sigmoid_f64(x[i]);
  const double t1 = x[i];
  top[i] = (t1 > 0.1 || t1 != t1 ? t1 : 0.1);
  narrow[i] = double(float(x[i]));
  whole[i] = double(to_whole<i64>(x[i] * 1e+10));
  far[i] = (x[i] > 0.0 ? as_bits<double>(0x7ff0000000000000ull) : 5e-324);
}
