// threefry

extern "C" __global__ void __launch_bounds__(32, 16) k_threefry(
    unsigned *y0,
    unsigned *y1) {
  const int local_x = int(threadIdx.x);
  const int i = local_x;
  const unsigned t0 = unsigned(i) + 2654435769u;
  const unsigned t1 = 4013372358u ^ t0;
  const unsigned t2 = t0 + t1;
  const unsigned t3 = ((t1 << 15u) | (t1 >> 17u)) ^ t2;
  const unsigned t4 = t2 + t3;
  y0[i] = t4 + (((t3 << 26u) | (t3 >> 6u)) ^ t4);
  const unsigned t5 = unsigned(i) + 2654435769u;
  const unsigned t6 = 4013372358u ^ t5;
  const unsigned t7 = t5 + t6;
  const unsigned t8 = ((t6 << 15u) | (t6 >> 17u)) ^ t7;
  const unsigned t9 = t7 + t8;
  const unsigned t10 = ((t8 << 26u) | (t8 >> 6u)) ^ t9;
  y1[i] = ((t10 << 6u) | (t10 >> 26u)) ^ (t9 + t10);
}
