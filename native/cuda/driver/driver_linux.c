#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef void *handle;
typedef unsigned long long devptr;

#define CU_FUNCTIONS(X)                                                                              \
	X(cuInit, "cuInit", int, (unsigned))                                                             \
	X(cuDeviceGet, "cuDeviceGet", int, (int *, int))                                                 \
	X(cuDeviceGetName, "cuDeviceGetName", int, (char *, int, int))                                   \
	X(cuDeviceGetAttribute, "cuDeviceGetAttribute", int, (int *, int, int))                          \
	X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", int, (handle *, int))                    \
	X(cuCtxSetCurrent, "cuCtxSetCurrent", int, (handle))                                             \
	X(cuCtxSynchronize, "cuCtxSynchronize", int, (void))                                             \
	X(cuMemAlloc, "cuMemAlloc_v2", int, (devptr *, size_t))                                          \
	X(cuMemFree, "cuMemFree_v2", int, (devptr))                                                      \
	X(cuMemcpyHtoD, "cuMemcpyHtoD_v2", int, (devptr, const void *, size_t))                          \
	X(cuMemcpyDtoH, "cuMemcpyDtoH_v2", int, (void *, devptr, size_t))                                \
	X(cuMemsetD8, "cuMemsetD8_v2", int, (devptr, unsigned char, size_t))                             \
	X(cuModuleLoadData, "cuModuleLoadDataEx", int, (handle *, const void *, unsigned, int *, void **)) \
	X(cuModuleGetFunction, "cuModuleGetFunction", int, (handle *, handle, const char *))             \
	X(cuLaunchKernel, "cuLaunchKernel", int,                                                         \
	  (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **)) \
	X(cuGetErrorString, "cuGetErrorString", int, (int, const char **))

#define NVRTC_FUNCTIONS(X)                                                                           \
	X(nvrtcCreateProgram, "nvrtcCreateProgram", int,                                                 \
	  (handle *, const char *, const char *, int, const char **, const char **))                     \
	X(nvrtcCompileProgram, "nvrtcCompileProgram", int, (handle, int, const char **))                 \
	X(nvrtcGetCUBINSize, "nvrtcGetCUBINSize", int, (handle, size_t *))                               \
	X(nvrtcGetCUBIN, "nvrtcGetCUBIN", int, (handle, char *))                                         \
	X(nvrtcGetProgramLogSize, "nvrtcGetProgramLogSize", int, (handle, size_t *))                     \
	X(nvrtcGetProgramLog, "nvrtcGetProgramLog", int, (handle, char *))                               \
	X(nvrtcDestroyProgram, "nvrtcDestroyProgram", int, (handle *))

#define DECLARE(name, symbol, result, args) static result(*name) args;
CU_FUNCTIONS(DECLARE)
NVRTC_FUNCTIONS(DECLARE)

static char load_error[512];

const char *rlx_load_error(void) { return load_error; }

// RESOLVE leaves the function with the name of the first symbol that is missing.
#define RESOLVE(name, symbol, result, args)                                       \
	*(void **)&name = dlsym(lib, symbol);                                         \
	if (!name) {                                                                  \
		snprintf(load_error, sizeof load_error, "the library lacks %s", symbol);  \
		return 1;                                                                 \
	}

static handle open_library(const char *path) {
	handle lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!lib) snprintf(load_error, sizeof load_error, "%s", dlerror());
	return lib;
}

int rlx_cuda_load(void) {
	handle lib = open_library("libcuda.so.1");
	if (!lib) return 1;
	CU_FUNCTIONS(RESOLVE)
	return 0;
}

int rlx_nvrtc_load(const char *path) {
	handle lib = open_library(path);
	if (!lib) return 1;
	NVRTC_FUNCTIONS(RESOLVE)
	return 0;
}

int rlx_cu_init(void) { return cuInit(0); }

int rlx_cu_device(int ordinal, int *device, char *name, int name_len, int *major, int *minor) {
	int r = cuDeviceGet(device, ordinal);
	if (!r) r = cuDeviceGetName(name, name_len, *device);
	if (!r) r = cuDeviceGetAttribute(major, 75, *device);
	if (!r) r = cuDeviceGetAttribute(minor, 76, *device);
	return r;
}

int rlx_cu_context(int device, void **context) { return cuDevicePrimaryCtxRetain(context, device); }
int rlx_cu_use(void *context) { return cuCtxSetCurrent(context); }

int rlx_cu_alloc(uint64_t *ptr, size_t bytes) {
	devptr p = 0;
	int r = cuMemAlloc(&p, bytes);
	*ptr = p;
	return r;
}

int rlx_cu_free(uint64_t ptr) { return cuMemFree(ptr); }
int rlx_cu_write(uint64_t dst, const void *src, size_t bytes) { return cuMemcpyHtoD(dst, src, bytes); }
int rlx_cu_read(void *dst, uint64_t src, size_t bytes) { return cuMemcpyDtoH(dst, src, bytes); }
int rlx_cu_fill(uint64_t dst, unsigned char value, size_t bytes) { return cuMemsetD8(dst, value, bytes); }
int rlx_cu_module(void **module, const void *image) { return cuModuleLoadData(module, image, 0, 0, 0); }

int rlx_cu_function(void **function, void *module, const char *name) {
	return cuModuleGetFunction(function, module, name);
}

int rlx_cu_launch(void *function, const unsigned *grid, const unsigned *block, void **args) {
	return cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], 0, 0, args, 0);
}

int rlx_cu_synchronize(void) { return cuCtxSynchronize(); }

const char *rlx_cu_error(int code) {
	const char *text = 0;
	return cuGetErrorString && cuGetErrorString(code, &text) == 0 && text ? text : "unknown error";
}

static void take_log(handle program, char **log) {
	size_t n = 0;
	if (nvrtcGetProgramLogSize(program, &n) != 0 || n == 0) return;
	*log = malloc(n + 1);
	(*log)[n] = 0;
	nvrtcGetProgramLog(program, *log);
}

int rlx_nvrtc_compile(const char *source, const char *arch, char **image, size_t *size, char **log) {
	handle program;
	int r = nvrtcCreateProgram(&program, source, "kernel.cu", 0, 0, 0);
	if (r) return r;
	const char *options[] = {arch, "--std=c++17"};
	r = nvrtcCompileProgram(program, 2, options);
	if (r) take_log(program, log);
	if (!r) r = nvrtcGetCUBINSize(program, size);
	if (!r) {
		*image = malloc(*size);
		r = nvrtcGetCUBIN(program, *image);
	}
	nvrtcDestroyProgram(&program);
	return r;
}
