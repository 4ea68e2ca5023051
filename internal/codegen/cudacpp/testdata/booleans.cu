// booleans

extern "C" __global__ void __launch_bounds__(16, 32) k_booleans(
    const unsigned *__restrict__ p,
    const unsigned *__restrict__ q,
    unsigned *both,
    unsigned *differ) {
  __shared__ unsigned all_q[16];
  unsigned mine[2];
  const int local_x = int(threadIdx.x);
  const int i = local_x;
  all_q[i] = unsigned(q[i] != 0u);
  mine[i % 2] = unsigned(p[i] != 0u);
  __syncthreads();
  const bool mine_p = mine[i % 2] != 0u;
  both[i] = unsigned(mine_p && !(q[i] != 0u));
  differ[i] = unsigned(mine_p != (all_q[int(unsigned(i) + 1u) % 16] != 0u));
}
