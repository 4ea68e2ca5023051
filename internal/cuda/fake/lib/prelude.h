// What a kernel of package cudacpp finds on a GPU, for a CPU: its block runs as
// fibers in turn, which let go of the processor at barriers and shuffles.
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __launch_bounds__(...)
#define __shared__ static

struct rlx_index { unsigned x, y, z; };
static rlx_index threadIdx, blockIdx, blockDim, gridDim;

#define RLX_VECTOR(type, name)                                                                        \
  struct alignas(2 * sizeof(type)) name##2 { type x, y; };                                            \
  struct alignas(sizeof(type) < 4 ? 4 * sizeof(type) : 16) name##4 { type x, y, z, w; };                                                    \
  static inline name##2 make_##name##2(type x, type y) { return {x, y}; }                             \
  static inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
RLX_VECTOR(float, float)
RLX_VECTOR(int, int)
RLX_VECTOR(unsigned, uint)
RLX_VECTOR(signed char, char)
RLX_VECTOR(unsigned char, uchar)
RLX_VECTOR(short, short)
RLX_VECTOR(unsigned short, ushort)
RLX_VECTOR(double, double)
RLX_VECTOR(long long, longlong)
RLX_VECTOR(unsigned long long, ulonglong)

#define RLX_MATH(name) extern "C" double name(double); extern "C" float name##f(float);
#define RLX_MATH_OF_TWO(name) extern "C" double name(double, double); extern "C" float name##f(float, float);
RLX_MATH(fabs) RLX_MATH(floor) RLX_MATH(ceil) RLX_MATH(rint) RLX_MATH(trunc) RLX_MATH(exp) RLX_MATH(expm1) RLX_MATH(log)
RLX_MATH(log1p) RLX_MATH(sqrt) RLX_MATH(sin) RLX_MATH(cos) RLX_MATH(tan) RLX_MATH(asin) RLX_MATH(acos) RLX_MATH(atan)
RLX_MATH(sinh) RLX_MATH(cosh) RLX_MATH(tanh) RLX_MATH(erf) RLX_MATH(erfc)
RLX_MATH_OF_TWO(pow) RLX_MATH_OF_TWO(atan2) RLX_MATH_OF_TWO(fmod)
static inline double rsqrt(double x) { return 1 / sqrt(x); }
static inline float rsqrtf(float x) { return 1 / sqrtf(x); }
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline double __dmul_rn(double x, double y) { return x * y; }
static inline bool isnan(double x) { return x != x; }
static inline bool isfinite(double x) { return x - x == 0; }
template <class T> static inline T min(T a, T b) { return b < a ? b : a; }
template <class T> static inline T max(T a, T b) { return a < b ? b : a; }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
template <class T> static inline T atomicOp(T *p, T old, T now) { return *p = now, old; }
template <class T> static inline T atomicAdd(T *p, T v) { return atomicOp(p, *p, T(*p + v)); }
template <class T> static inline T atomicMax(T *p, T v) { return atomicOp(p, *p, max(*p, v)); }
template <class T> static inline T atomicMin(T *p, T v) { return atomicOp(p, *p, min(*p, v)); }
template <class T> static inline T atomicOr(T *p, T v) { return atomicOp(p, *p, T(*p | v)); }
template <class T> static inline T atomicExch(T *p, T v) { return atomicOp(p, *p, v); }
template <class T> static inline T atomicCAS(T *p, T expected, T v) { return *p == expected ? atomicOp(p, *p, v) : *p; }

// In a fake graph a condition is the address of its value.
extern "C" void cudaGraphSetConditional(unsigned long long condition, unsigned value) { *(unsigned *)condition = value; }

// A block's threads.
enum { rlx_threads_max = 1024, rlx_stack = 64 << 10 };
struct rlx_fiber { jmp_buf at; bool begun, done; };
static rlx_fiber rlx_fibers[rlx_threads_max];
static jmp_buf rlx_home;
static char *rlx_stacks;
static int rlx_threads, rlx_now, rlx_left, rlx_waiting, rlx_generation;
static unsigned long long rlx_lanes[rlx_threads_max];
static void (*rlx_body)(char *);
static char *rlx_cells;

// A switch by setjmp makes no system call, as one by swapcontext does.
static void rlx_yield() { if (!_setjmp(rlx_fibers[rlx_now].at)) _longjmp(rlx_home, 1); }

static void rlx_release() { if (rlx_waiting > 0 && rlx_waiting >= rlx_left) rlx_waiting = 0, rlx_generation++; }

static void __syncthreads() {
  const int generation = rlx_generation;
  rlx_waiting++;
  rlx_release();
  while (generation == rlx_generation) rlx_yield();
}
static void __threadfence() {}

// All threads of a block are taken in turn, so that between two looks of one
// thread every other has come as far, where they go the same way.
template <class T> static T __shfl_xor_sync(unsigned, T v, int lanes) {
  memcpy(&rlx_lanes[rlx_now], &v, sizeof v);
  rlx_yield();
  T other;
  memcpy(&other, &rlx_lanes[rlx_now ^ lanes], sizeof other);
  rlx_yield();
  return other;
}

// A fiber runs its thread of one block after another.
static void rlx_thread() {
  for (;;) {
    rlx_body(rlx_cells);
    rlx_fibers[rlx_now].done = true;
    rlx_left--;
    rlx_release();
    rlx_yield();
  }
}

static void rlx_resume() {
  if (_setjmp(rlx_home)) return;
  rlx_fiber *f = &rlx_fibers[rlx_now];
  if (f->begun) _longjmp(f->at, 1);
  f->begun = true;
  static ucontext_t start;
  getcontext(&start);
  start.uc_stack.ss_sp = rlx_stacks + (size_t)rlx_now * rlx_stack;
  start.uc_stack.ss_size = rlx_stack;
  makecontext(&start, rlx_thread, 0);
  setcontext(&start);
}

static void rlx_block() {
  rlx_left = rlx_threads, rlx_waiting = 0;
  for (int i = 0; i < rlx_threads; i++) rlx_fibers[i].done = false;
  while (rlx_left > 0)
    for (rlx_now = 0; rlx_now < rlx_threads; rlx_now++) {
      if (rlx_fibers[rlx_now].done) continue;
      const unsigned n = rlx_now;
      threadIdx = {n % blockDim.x, n / blockDim.x % blockDim.y, n / blockDim.x / blockDim.y};
      rlx_resume();
    }
}

static void rlx_grid(void (*body)(char *), char *cells, const unsigned *grid, const unsigned *block) {
  if (!rlx_stacks) rlx_stacks = (char *)malloc((size_t)rlx_threads_max * rlx_stack);
  rlx_body = body, rlx_cells = cells;
  gridDim = {grid[0], grid[1], grid[2]}, blockDim = {block[0], block[1], block[2]};
  rlx_threads = block[0] * block[1] * block[2];
  for (blockIdx.z = 0; blockIdx.z < grid[2]; blockIdx.z++)
    for (blockIdx.y = 0; blockIdx.y < grid[1]; blockIdx.y++)
      for (blockIdx.x = 0; blockIdx.x < grid[0]; blockIdx.x++) rlx_block();
}

template <int... I> struct rlx_numbers {};
template <class T, T... I> using rlx_sequence = rlx_numbers<I...>;
template <class... A, int... I> static void rlx_call(void (*f)(A...), rlx_numbers<I...>, char *cells) { f(*(A *)(cells + 8 * I)...); }
template <class... A> static void rlx_enter(void (*f)(A...), char *cells) { rlx_call(f, __make_integer_seq<rlx_sequence, int, sizeof...(A)>(), cells); }
template <class... A> static int rlx_copy(void (*f)(A...), void **args, char *cells) {
  const size_t sizes[] = {sizeof(A)...};
  for (unsigned i = 0; i < sizeof...(A); i++) memcpy(cells + 8 * i, args[i], sizes[i]);
  return sizeof...(A);
}

// What the fake driver calls of the kernel with a key: its parameters as cells of 8 bytes,
// and a launch.
#define RLX_KERNEL(key, name)                                                                       \
  static void rlx_enter_##key(char *cells) { rlx_enter(name, cells); }                              \
  extern "C" int rlx_pack_##key(void **args, char *cells) { return rlx_copy(name, args, cells); }   \
  extern "C" void rlx_run_##key(char *cells, const unsigned *grid, const unsigned *block) { rlx_grid(rlx_enter_##key, cells, grid, block); }
