// integers

extern "C" __global__ void __launch_bounds__(10, 51) k_integers(
    const int *__restrict__ a,
    const int *__restrict__ b,
    int *quot,
    int *rest,
    int *floor_,
    int *modulo,
    int *shift,
    int *mixed) {
  const int local_x = int(threadIdx.x);
  const int i = local_x;
  const int t0 = a[i];
  const int t1 = b[i];
  quot[i] = t0 / (t1 == 0 || (t1 == -1 && t0 == (-2147483647 - 1)) ? 1 : t1);
  const int t2 = a[i];
  const int t3 = b[i];
  rest[i] = t2 % (t3 == 0 || (t3 == -1 && t2 == (-2147483647 - 1)) ? 1 : t3);
  const int t4 = a[i];
  const int t5 = b[i];
  const int t6 = (t5 == 0 || (t5 == -1 && t4 == (-2147483647 - 1)) ? 1 : t5);
  const int t7 = t4 % t6;
  floor_[i] = int(unsigned(t4 / t6) - unsigned(int(t7 != 0 && (t7 < 0) != (t6 < 0))));
  const int t8 = a[i] % 5;
  modulo[i] = t8 + (t8 != 0 && (t8 < 0) != false ? 5 : 0);
  const int t9 = a[i];
  shift[i] = int(unsigned(t9) << 3u) ^ (t9 >> ((b[i] & 31) & 31));
  const int t10 = a[i];
  mixed[i] = int(unsigned(int(__popc(t10))) + unsigned(~max(t10, (-2147483647 - 1))));
}
