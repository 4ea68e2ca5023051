// Uses one of each family that device.h declares.
extern "C" __global__ void k(float *x, double *d, int *i, unsigned *u, unsigned long long *q) {
 x[0] = sinf(x[1]) + cosf(x[2]) + powf(x[0],2.f) + rsqrtf(x[0]) + erff(x[3]) + log1pf(x[1]) + fmaf(x[0],x[1],x[2]) + fabsf(x[0])+ __expf(x[1]) + ldexpf(x[0],3) + roundf(x[0])+rintf(x[1])+truncf(x[2])+copysignf(x[1],x[2])+__frcp_rn(x[1])+fmodf(x[0],x[1]);
 d[0] = sin(d[0])+exp(d[1])+fma(d[0],d[1],d[2])+max(d[0],d[1]) + log1p(d[0]);
 i[0] = atomicAdd(i, 3) + atomicCAS(i, 1, 2) + atomicMin(i, 3) + __popc(u[0]) + __clz(i[0]) + abs(i[1]) + min(i[0], i[1]) + __float_as_int(x[0]);
 u[0] = atomicAdd(u, 3u) + atomicOr(u, 3u) + __umulhi(u[0], u[1]) + __brev(u[1]) + __ballot_sync(~0u, x[0] > 0) + atomicExch(u, 3u);
 q[0] = atomicAdd(q, 3ull); atomicAdd(x, 1.0f); atomicAdd(d, 1.0);
 x[1] = __shfl_down_sync(~0u, x[0], 1) + __shfl_up_sync(~0u, x[0], 1)+ __shfl_sync(~0u, x[0], 1) + __ldg(x);
 __syncwarp(); __threadfence();
 uint2 v = make_uint2(u[0], u[1]); u[3] = v.x + v.y; u[4] = __shfl_xor_sync(~0u, u[3], 4); uint3 t = make_uint3(threadIdx.x, threadIdx.y, blockIdx.z); u[5] = t.z + gridDim.x;
 unsigned short h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x[0])); u[7] = h;
 __shared__ __align__(16) float tile[32][33]; tile[threadIdx.y][threadIdx.x] = x[4]; __syncthreads(); x[5] = tile[threadIdx.x][threadIdx.y];
}
