// Metal's library as far as package msl uses it, for clang's C++ for OpenCL. Most of it is
// OpenCL's own under the same names.
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

#define kernel __kernel
#define device __global
#define constant __constant
#define threadgroup __local
#define thread __private

// OpenCL has vectors made by a cast.
#define char2(...) ((char2)(__VA_ARGS__))
#define char4(...) ((char4)(__VA_ARGS__))
#define uchar2(...) ((uchar2)(__VA_ARGS__))
#define uchar4(...) ((uchar4)(__VA_ARGS__))
#define short2(...) ((short2)(__VA_ARGS__))
#define short4(...) ((short4)(__VA_ARGS__))
#define ushort2(...) ((ushort2)(__VA_ARGS__))
#define ushort4(...) ((ushort4)(__VA_ARGS__))
#define int2(...) ((int2)(__VA_ARGS__))
#define int4(...) ((int4)(__VA_ARGS__))
#define uint2(...) ((uint2)(__VA_ARGS__))
#define uint4(...) ((uint4)(__VA_ARGS__))
#define long2(...) ((long2)(__VA_ARGS__))
#define long4(...) ((long4)(__VA_ARGS__))
#define ulong2(...) ((ulong2)(__VA_ARGS__))
#define ulong4(...) ((ulong4)(__VA_ARGS__))
#define half2(...) ((half2)(__VA_ARGS__))
#define half4(...) ((half4)(__VA_ARGS__))
#define float2(...) ((float2)(__VA_ARGS__))
#define float4(...) ((float4)(__VA_ARGS__))

template <class T, class S> T as_type(S from) {
  static_assert(sizeof(T) == sizeof(S), "as_type between types of different sizes");
  return __builtin_bit_cast(T, from);
}

struct bfloat {
  ushort bits;
  bfloat() = default;
  explicit bfloat(float);
  operator float() const;
};
struct bfloat2 {
  bfloat x, y;
  bfloat2() = default;
  bfloat2(bfloat, bfloat);
};
struct bfloat4 {
  bfloat x, y, z, w;
  bfloat4() = default;
  bfloat4(bfloat, bfloat, bfloat, bfloat);
};

namespace metal {
enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2 };
inline mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(int(a) | int(b)); }
void threadgroup_barrier(mem_flags);

template <class T> T simd_sum(T);
template <class T> T simd_max(T);
template <class T> T simd_min(T);
template <class T> T simd_shuffle_xor(T, ushort);

template <class T, int C, int R> struct simdgroup_matrix { T elements[C * R / 32]; };
using simdgroup_bfloat8x8 = simdgroup_matrix<bfloat, 8, 8>;
using simdgroup_half8x8 = simdgroup_matrix<half, 8, 8>;
using simdgroup_float8x8 = simdgroup_matrix<float, 8, 8>;
template <class T, int C, int R> simdgroup_matrix<T, C, R> make_filled_simdgroup_matrix(T value);
template <class T, int C, int R>
void simdgroup_load(thread simdgroup_matrix<T, C, R> &d, const threadgroup T *from, ulong row, ulong2 origin = 0, bool transposed = false);
template <class T, int C, int R>
void simdgroup_store(thread simdgroup_matrix<T, C, R> a, threadgroup T *to, ulong row, ulong2 origin = 0, bool transposed = false);
template <class T, int N>
void simdgroup_multiply_accumulate(thread simdgroup_matrix<float, N, N> &d, thread simdgroup_matrix<T, N, N> a,
                                   thread simdgroup_matrix<T, N, N> b, thread simdgroup_matrix<float, N, N> c);

namespace precise {
inline float sqrt(float x) { return ::sqrt(x); }
inline float rsqrt(float x) { return ::rsqrt(x); }
}
} // namespace metal
