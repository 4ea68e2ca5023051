// counted_state

extern "C" __global__ void __launch_bounds__(32, 16) k_counted_state(
    const int *__restrict__ x,
    int *state) {
  const int group_x = int(blockIdx.x);
  const int local_x = int(threadIdx.x);
  const int i = group_x * 32 + local_x;
  if (*(volatile const int *)&state[1] < 0 && x[i] > 50) {
    atomicAdd(&state[0], 1);
  }
}
