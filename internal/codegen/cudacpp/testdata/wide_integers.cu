// wide_integers
typedef long long i64;
typedef unsigned long long u64;

extern "C" __global__ void __launch_bounds__(12, 42) k_wide_integers(
    const i64 *__restrict__ x,
    u64 *mixed,
    int *short_word) {
  const int local_x = int(threadIdx.x);
  const int i = local_x;
  const u64 t0 = u64(x[i]) * 6364136223846793005ull;
  mixed[i] = (t0 ^ (t0 >> 33ull)) >> 40ull;
  const u64 t1 = u64(x[i]) * 6364136223846793005ull;
  short_word[i] = int(t1 ^ (t1 >> 33ull)) / 7;
}
