#ifndef RLX_CUDA_DRIVER_H
#define RLX_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

// The functions of the CUDA driver and of NVRTC that rlx calls, found at run
// time. Names carry the suffix of the ABI they were declared for: the plain
// names of some are an older one.
int rlx_cuda_load(void);
int rlx_nvrtc_load(const char *path);
const char *rlx_load_error(void);

int rlx_cu_init(void);
int rlx_cu_device(int ordinal, int *device, char *name, int name_len, int *major, int *minor);
int rlx_cu_context(int device, void **context);
int rlx_cu_use(void *context);
int rlx_cu_alloc(uint64_t *ptr, size_t bytes);
int rlx_cu_free(uint64_t ptr);
int rlx_cu_write(uint64_t dst, const void *src, size_t bytes);
int rlx_cu_read(void *dst, uint64_t src, size_t bytes);
int rlx_cu_fill(uint64_t dst, unsigned char value, size_t bytes);
int rlx_cu_module(void **module, const void *image);
int rlx_cu_function(void **function, void *module, const char *name);
int rlx_cu_launch(void *function, const unsigned *grid, const unsigned *block, void **args);
int rlx_cu_synchronize(void);
const char *rlx_cu_error(int code);

// rlx_nvrtc_compile leaves a cubin in image, or a log where the result is not
// 0; either is freed by the caller.
int rlx_nvrtc_compile(const char *source, const char *arch, char **image, size_t *size, char **log);

#endif
