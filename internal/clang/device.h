// What NVRTC declares on its own and generated kernels may use: qualifiers, built-in
// variables, vector types, barriers, shuffles, atomics and device math. Clang reads
// this in place of the CUDA toolkit's headers. Math functions are declarations only:
// their calls stay calls in the PTX, which is enough to check types and names.

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __grid_constant__ __attribute__((grid_constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))

#define RLX_DEVICE static __device__ __forceinline__
#define RLX_EXTERN extern "C" __device__

typedef __SIZE_TYPE__ size_t;

// Built-in variables: each read is a read of a special register.
#define RLX_COORDINATES(type, register)                                                        \
  struct type {                                                                                \
    __declspec(property(get = get_x)) unsigned x;                                              \
    __declspec(property(get = get_y)) unsigned y;                                              \
    __declspec(property(get = get_z)) unsigned z;                                              \
    __device__ __forceinline__ unsigned get_x() const { return __nvvm_read_ptx_sreg_##register##_x(); } \
    __device__ __forceinline__ unsigned get_y() const { return __nvvm_read_ptx_sreg_##register##_y(); } \
    __device__ __forceinline__ unsigned get_z() const { return __nvvm_read_ptx_sreg_##register##_z(); } \
  }
RLX_COORDINATES(rlx_thread_index, tid);
RLX_COORDINATES(rlx_block_index, ctaid);
RLX_COORDINATES(rlx_block_size, ntid);
RLX_COORDINATES(rlx_grid_size, nctaid);
#undef RLX_COORDINATES
extern __device__ const rlx_thread_index threadIdx;
extern __device__ const rlx_block_index blockIdx;
extern __device__ const rlx_block_size blockDim;
extern __device__ const rlx_grid_size gridDim;
static const int warpSize = 32;

// Vector types with the alignment that makes their loads one instruction.
#define RLX_VECTORS(scalar, name, align2, align4)                                                    \
  struct __align__(align2) name##2 { scalar x, y; };                                                 \
  struct name##3 { scalar x, y, z; };                                                                \
  struct __align__(align4) name##4 { scalar x, y, z, w; };                                           \
  RLX_DEVICE name##2 make_##name##2(scalar x, scalar y) { return name##2{x, y}; }                    \
  RLX_DEVICE name##3 make_##name##3(scalar x, scalar y, scalar z) { return name##3{x, y, z}; }       \
  RLX_DEVICE name##4 make_##name##4(scalar x, scalar y, scalar z, scalar w) { return name##4{x, y, z, w}; }
RLX_VECTORS(float, float, 8, 16)
RLX_VECTORS(int, int, 8, 16)
RLX_VECTORS(unsigned int, uint, 8, 16)
RLX_VECTORS(short, short, 4, 8)
RLX_VECTORS(unsigned short, ushort, 4, 8)
RLX_VECTORS(signed char, char, 2, 4)
RLX_VECTORS(unsigned char, uchar, 2, 4)
RLX_VECTORS(double, double, 16, 16)
RLX_VECTORS(long long, longlong, 16, 16)
RLX_VECTORS(unsigned long long, ulonglong, 16, 16)
#undef RLX_VECTORS

// Barriers and fences. Clang declares __syncthreads.
RLX_DEVICE void __syncwarp(unsigned mask = 0xffffffffu) { __nvvm_bar_warp_sync(mask); }
RLX_DEVICE void __threadfence() { __nvvm_membar_gl(); }
RLX_DEVICE void __threadfence_block() { __nvvm_membar_cta(); }

// Bits of one type read as another.
RLX_DEVICE int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
RLX_DEVICE unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
RLX_DEVICE float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
RLX_DEVICE float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
RLX_DEVICE long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
RLX_DEVICE double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }

// The address of shared memory in its own space.
RLX_DEVICE size_t __cvta_generic_to_shared(const void *p) { return (size_t)(const __attribute__((address_space(3))) void *)p; }

// Warp shuffles and votes. A 32-bit exchange carries every type.
RLX_DEVICE int __shfl_sync(unsigned mask, int v, int lane, int width = 32) { return __nvvm_shfl_sync_idx_i32(mask, v, lane, ((32 - width) << 8) | 31); }
RLX_DEVICE int __shfl_xor_sync(unsigned mask, int v, int lanes, int width = 32) { return __nvvm_shfl_sync_bfly_i32(mask, v, lanes, ((32 - width) << 8) | 31); }
RLX_DEVICE int __shfl_down_sync(unsigned mask, int v, unsigned by, int width = 32) { return __nvvm_shfl_sync_down_i32(mask, v, by, ((32 - width) << 8) | 31); }
RLX_DEVICE int __shfl_up_sync(unsigned mask, int v, unsigned by, int width = 32) { return __nvvm_shfl_sync_up_i32(mask, v, by, (32 - width) << 8); }
#define RLX_SHUFFLES(type)                                                                                                                        \
  RLX_DEVICE type __shfl_sync(unsigned m, type v, int lane, int w = 32) { return __builtin_bit_cast(type, __shfl_sync(m, __builtin_bit_cast(int, v), lane, w)); }         \
  RLX_DEVICE type __shfl_xor_sync(unsigned m, type v, int lanes, int w = 32) { return __builtin_bit_cast(type, __shfl_xor_sync(m, __builtin_bit_cast(int, v), lanes, w)); } \
  RLX_DEVICE type __shfl_down_sync(unsigned m, type v, unsigned by, int w = 32) { return __builtin_bit_cast(type, __shfl_down_sync(m, __builtin_bit_cast(int, v), by, w)); } \
  RLX_DEVICE type __shfl_up_sync(unsigned m, type v, unsigned by, int w = 32) { return __builtin_bit_cast(type, __shfl_up_sync(m, __builtin_bit_cast(int, v), by, w)); }
RLX_SHUFFLES(float)
RLX_SHUFFLES(unsigned)
#undef RLX_SHUFFLES
RLX_DEVICE int __any_sync(unsigned mask, int predicate) { return __nvvm_vote_any_sync(mask, predicate); }
RLX_DEVICE int __all_sync(unsigned mask, int predicate) { return __nvvm_vote_all_sync(mask, predicate); }
RLX_DEVICE unsigned __ballot_sync(unsigned mask, int predicate) { return __nvvm_vote_ballot_sync(mask, predicate); }

// Atomics: relaxed, at device scope, as in CUDA.
#define RLX_ATOMIC(type, name, builtin) RLX_DEVICE type name(type *p, type v) { return builtin(p, v, __ATOMIC_RELAXED); }
#define RLX_ATOMICS(type)                         \
  RLX_ATOMIC(type, atomicAdd, __atomic_fetch_add) \
  RLX_ATOMIC(type, atomicSub, __atomic_fetch_sub) \
  RLX_ATOMIC(type, atomicMin, __atomic_fetch_min) \
  RLX_ATOMIC(type, atomicMax, __atomic_fetch_max) \
  RLX_ATOMIC(type, atomicAnd, __atomic_fetch_and) \
  RLX_ATOMIC(type, atomicOr, __atomic_fetch_or)   \
  RLX_ATOMIC(type, atomicXor, __atomic_fetch_xor) \
  RLX_ATOMIC(type, atomicExch, __atomic_exchange_n) \
  RLX_DEVICE type atomicCAS(type *p, type expected, type v) { __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED); return expected; }
RLX_ATOMICS(int)
RLX_ATOMICS(unsigned)
RLX_ATOMICS(unsigned long long)
RLX_ATOMIC(float, atomicAdd, __atomic_fetch_add)
RLX_ATOMIC(double, atomicAdd, __atomic_fetch_add)
#undef RLX_ATOMICS
#undef RLX_ATOMIC

// Device math: each function for double and, with the suffix f, for float.
#define RLX_MATH1(name) RLX_EXTERN double name(double); RLX_EXTERN float name##f(float);
#define RLX_MATH2(name) RLX_EXTERN double name(double, double); RLX_EXTERN float name##f(float, float);
RLX_MATH1(acos) RLX_MATH1(acosh) RLX_MATH1(asin) RLX_MATH1(asinh) RLX_MATH1(atan) RLX_MATH1(atanh)
RLX_MATH1(cbrt) RLX_MATH1(ceil) RLX_MATH1(cos) RLX_MATH1(cosh) RLX_MATH1(cospi) RLX_MATH1(erf) RLX_MATH1(erfc)
RLX_MATH1(erfinv) RLX_MATH1(exp) RLX_MATH1(exp2) RLX_MATH1(exp10) RLX_MATH1(expm1) RLX_MATH1(fabs) RLX_MATH1(floor)
RLX_MATH1(lgamma) RLX_MATH1(log) RLX_MATH1(log10) RLX_MATH1(log1p) RLX_MATH1(log2) RLX_MATH1(nearbyint)
RLX_MATH1(rint) RLX_MATH1(round) RLX_MATH1(rsqrt) RLX_MATH1(sin) RLX_MATH1(sinh) RLX_MATH1(sinpi) RLX_MATH1(sqrt)
RLX_MATH1(tan) RLX_MATH1(tanh) RLX_MATH1(tgamma) RLX_MATH1(trunc)
RLX_MATH2(atan2) RLX_MATH2(copysign) RLX_MATH2(fdim) RLX_MATH2(fmax) RLX_MATH2(fmin) RLX_MATH2(fmod) RLX_MATH2(hypot)
RLX_MATH2(nextafter) RLX_MATH2(pow) RLX_MATH2(remainder)
RLX_EXTERN double fma(double, double, double);
RLX_EXTERN float fmaf(float, float, float);
RLX_EXTERN double ldexp(double, int);
RLX_EXTERN float ldexpf(float, int);
RLX_EXTERN double frexp(double, int *);
RLX_EXTERN float frexpf(float, int *);
RLX_EXTERN float __expf(float);
RLX_EXTERN float __logf(float);
RLX_EXTERN float __powf(float, float);
RLX_EXTERN float __sinf(float);
RLX_EXTERN float __cosf(float);
RLX_EXTERN float __fdividef(float, float);
RLX_EXTERN float __frcp_rn(float);
RLX_EXTERN float __fsqrt_rn(float);
RLX_EXTERN float __fadd_rn(float, float);
RLX_EXTERN float __fsub_rn(float, float);
RLX_EXTERN float __fmul_rn(float, float);
RLX_EXTERN float __fdiv_rn(float, float);
RLX_EXTERN float __fmaf_rn(float, float, float);
RLX_EXTERN double __dadd_rn(double, double);
RLX_EXTERN double __dmul_rn(double, double);
#undef RLX_MATH1
#undef RLX_MATH2

// Overloads and integer functions.
RLX_DEVICE bool isnan(float x) { return __builtin_isnan(x); }
RLX_DEVICE bool isnan(double x) { return __builtin_isnan(x); }
RLX_DEVICE bool isinf(float x) { return __builtin_isinf(x); }
RLX_DEVICE bool isinf(double x) { return __builtin_isinf(x); }
RLX_DEVICE bool isfinite(float x) { return __builtin_isfinite(x); }
RLX_DEVICE bool isfinite(double x) { return __builtin_isfinite(x); }
RLX_DEVICE bool signbit(float x) { return __builtin_signbit(x); }
RLX_DEVICE bool signbit(double x) { return __builtin_signbit(x); }
#define RLX_ORDER(type)                                          \
  RLX_DEVICE type min(type a, type b) { return b < a ? b : a; }  \
  RLX_DEVICE type max(type a, type b) { return a < b ? b : a; }
RLX_ORDER(int)
RLX_ORDER(unsigned)
RLX_ORDER(long long)
RLX_ORDER(unsigned long long)
#undef RLX_ORDER
RLX_DEVICE float min(float a, float b) { return fminf(a, b); }
RLX_DEVICE float max(float a, float b) { return fmaxf(a, b); }
RLX_DEVICE double min(double a, double b) { return fmin(a, b); }
RLX_DEVICE double max(double a, double b) { return fmax(a, b); }
RLX_DEVICE int abs(int x) { return x < 0 ? -x : x; }
RLX_DEVICE long long llabs(long long x) { return x < 0 ? -x : x; }
RLX_DEVICE int __popc(unsigned x) { return __builtin_popcount(x); }
RLX_DEVICE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
RLX_DEVICE int __clz(int x) { return x ? __builtin_clz(x) : 32; }
RLX_DEVICE int __ffs(int x) { return __builtin_ffs(x); }
RLX_DEVICE unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
RLX_DEVICE unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a * b) >> 32); }
RLX_DEVICE int __mulhi(int a, int b) { return (int)(((long long)a * b) >> 32); }
template <typename T> RLX_DEVICE T __ldg(const T *p) { return *p; }

#undef RLX_DEVICE
#undef RLX_EXTERN
