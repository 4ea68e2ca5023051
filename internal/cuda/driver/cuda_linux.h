#ifndef RLX_CUDA_H
#define RLX_CUDA_H

#include <stddef.h>
#include <stdint.h>

// What rlx uses of the CUDA driver and of NVRTC, found at run time. The second
// column is the symbol: the plain names of some functions are an older ABI.
typedef void *rlx_handle;
typedef unsigned long long rlx_ptr;

#define RLX_DRIVER(X)                                                                                      \
	X(cuInit, "cuInit", int, (unsigned))                                                                   \
	X(cuDriverGetVersion, "cuDriverGetVersion", int, (int *))                                              \
	X(cuDeviceGetCount, "cuDeviceGetCount", int, (int *))                                                  \
	X(cuDeviceGet, "cuDeviceGet", int, (int *, int))                                                       \
	X(cuDeviceGetName, "cuDeviceGetName", int, (char *, int, int))                                         \
	X(cuDeviceGetAttribute, "cuDeviceGetAttribute", int, (int *, int, int))                                \
	X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", int, (size_t *, int))                                       \
	X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", int, (rlx_handle *, int))                      \
	X(cuCtxSetCurrent, "cuCtxSetCurrent", int, (rlx_handle))                                               \
	X(cuMemGetInfo, "cuMemGetInfo_v2", int, (size_t *, size_t *))                                          \
	X(cuMemAlloc, "cuMemAlloc_v2", int, (rlx_ptr *, size_t))                                               \
	X(cuMemFree, "cuMemFree_v2", int, (rlx_ptr))                                                           \
	X(cuMemHostAlloc, "cuMemHostAlloc", int, (void **, size_t, unsigned))                                  \
	X(cuMemFreeHost, "cuMemFreeHost", int, (void *))                                                       \
	X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", int, (rlx_ptr, const void *, size_t, rlx_handle))         \
	X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", int, (void *, rlx_ptr, size_t, rlx_handle))               \
	X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", int, (rlx_ptr, rlx_ptr, size_t, rlx_handle))              \
	X(cuMemsetD32Async, "cuMemsetD32Async", int, (rlx_ptr, unsigned, size_t, rlx_handle))                  \
	X(cuStreamCreate, "cuStreamCreate", int, (rlx_handle *, unsigned))                                     \
	X(cuStreamDestroy, "cuStreamDestroy_v2", int, (rlx_handle))                                            \
	X(cuStreamSynchronize, "cuStreamSynchronize", int, (rlx_handle))                                       \
	X(cuStreamWaitEvent, "cuStreamWaitEvent", int, (rlx_handle, rlx_handle, unsigned))                     \
	X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", int, (rlx_handle, int))                             \
	X(cuStreamEndCapture, "cuStreamEndCapture", int, (rlx_handle, rlx_handle *))                           \
	X(cuGraphInstantiate, "cuGraphInstantiateWithFlags", int, (rlx_handle *, rlx_handle, unsigned long long)) \
	X(cuGraphLaunch, "cuGraphLaunch", int, (rlx_handle, rlx_handle))                                       \
	X(cuGraphExecDestroy, "cuGraphExecDestroy", int, (rlx_handle))                                         \
	X(cuGraphDestroy, "cuGraphDestroy", int, (rlx_handle))                                                 \
	X(cuEventCreate, "cuEventCreate", int, (rlx_handle *, unsigned))                                       \
	X(cuEventRecord, "cuEventRecord", int, (rlx_handle, rlx_handle))                                       \
	X(cuEventQuery, "cuEventQuery", int, (rlx_handle))                                                     \
	X(cuEventElapsedTime, "cuEventElapsedTime", int, (float *, rlx_handle, rlx_handle))                    \
	X(cuEventDestroy, "cuEventDestroy_v2", int, (rlx_handle))                                              \
	X(cuModuleLoadData, "cuModuleLoadDataEx", int, (rlx_handle *, const void *, unsigned, int *, void **)) \
	X(cuModuleGetFunction, "cuModuleGetFunction", int, (rlx_handle *, rlx_handle, const char *))           \
	X(cuFuncSetAttribute, "cuFuncSetAttribute", int, (rlx_handle, int, int))                               \
	X(cuModuleUnload, "cuModuleUnload", int, (rlx_handle))                                                 \
	X(cuLaunchKernel, "cuLaunchKernel", int,                                                               \
	  (rlx_handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, rlx_handle, void **, void **)) \
	X(cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled", int,                                               \
	  (void *, int, unsigned, rlx_ptr, const uint64_t *, const uint64_t *, const unsigned *, const unsigned *, int, int, int, int)) \
	X(cuTensorMapEncodeIm2col, "cuTensorMapEncodeIm2col", int,                                             \
	  (void *, int, unsigned, rlx_ptr, const uint64_t *, const uint64_t *, const int *, const int *, unsigned, unsigned, const unsigned *, int, int, int, int)) \
	X(cuGetErrorName, "cuGetErrorName", int, (int, const char **))                                         \
	X(cuGetErrorString, "cuGetErrorString", int, (int, const char **))

// Optional, from CUDA 12.4 on: conditional nodes of graphs.
#define RLX_BRANCHES(X)                                                                                    \
	X(cuStreamGetCaptureInfo, "cuStreamGetCaptureInfo_v2", int,                                            \
	  (rlx_handle, int *, unsigned long long *, rlx_handle *, const rlx_handle **, size_t *))              \
	X(cuStreamUpdateCaptureDependencies, "cuStreamUpdateCaptureDependencies", int,                         \
	  (rlx_handle, rlx_handle *, size_t, unsigned))                                                        \
	X(cuStreamBeginCaptureToGraph, "cuStreamBeginCaptureToGraph", int,                                     \
	  (rlx_handle, rlx_handle, const rlx_handle *, const void *, size_t, int))                             \
	X(cuGraphConditionalHandleCreate, "cuGraphConditionalHandleCreate", int,                               \
	  (unsigned long long *, rlx_handle, rlx_handle, unsigned, unsigned))                                  \
	X(cuGraphAddNode, "cuGraphAddNode", int, (rlx_handle *, rlx_handle, const rlx_handle *, size_t, void *))

// Optional, from CUDA 11.8 on: launches with attributes.
#define RLX_ATTRIBUTES(X) X(cuLaunchKernelEx, "cuLaunchKernelEx", int, (const void *, rlx_handle, void **, void **))

// Optional, from CUDA 11.7 on: priorities of the kernels of a graph.
#define RLX_PRIORITIES(X) X(cuGraphKernelNodeSetAttribute, "cuGraphKernelNodeSetAttribute", int, (rlx_handle, int, const void *))

// Optional: editing graphs before instantiation.
#define RLX_EDITS(X)                                                                                       \
	X(cuGraphGetNodes, "cuGraphGetNodes", int, (rlx_handle, rlx_handle *, size_t *))                       \
	X(cuGraphNodeGetType, "cuGraphNodeGetType", int, (rlx_handle, int *))                                  \
	X(cuGraphMemsetNodeGetParams, "cuGraphMemsetNodeGetParams", int, (rlx_handle, void *))                 \
	X(cuGraphNodeGetDependencies, "cuGraphNodeGetDependencies", int, (rlx_handle, rlx_handle *, size_t *)) \
	X(cuGraphNodeGetDependentNodes, "cuGraphNodeGetDependentNodes", int, (rlx_handle, rlx_handle *, size_t *)) \
	X(cuGraphAddKernelNode, "cuGraphAddKernelNode_v2", int,                                                \
	  (rlx_handle *, rlx_handle, const rlx_handle *, size_t, const void *))                                \
	X(cuGraphAddDependencies, "cuGraphAddDependencies", int,                                               \
	  (rlx_handle, const rlx_handle *, const rlx_handle *, size_t))                                        \
	X(cuGraphDestroyNode, "cuGraphDestroyNode", int, (rlx_handle))

// Optional: virtual memory management, see rlx_guarded_make.
#define RLX_WALLS(X)                                                                                       \
	X(cuMemGetAllocationGranularity, "cuMemGetAllocationGranularity", int, (size_t *, const void *, int))  \
	X(cuMemAddressReserve, "cuMemAddressReserve", int, (rlx_ptr *, size_t, size_t, rlx_ptr, unsigned long long)) \
	X(cuMemAddressFree, "cuMemAddressFree", int, (rlx_ptr, size_t))                                        \
	X(cuMemCreate, "cuMemCreate", int, (unsigned long long *, size_t, const void *, unsigned long long))   \
	X(cuMemRelease, "cuMemRelease", int, (unsigned long long))                                             \
	X(cuMemMap, "cuMemMap", int, (rlx_ptr, size_t, size_t, unsigned long long, unsigned long long))        \
	X(cuMemUnmap, "cuMemUnmap", int, (rlx_ptr, size_t))                                                    \
	X(cuMemSetAccess, "cuMemSetAccess", int, (rlx_ptr, size_t, const void *, size_t))

#define RLX_NVRTC(X)                                                                                       \
	X(nvrtcVersion, "nvrtcVersion", int, (int *, int *))                                                   \
	X(nvrtcGetNumSupportedArchs, "nvrtcGetNumSupportedArchs", int, (int *))                                \
	X(nvrtcGetSupportedArchs, "nvrtcGetSupportedArchs", int, (int *))                                      \
	X(nvrtcCreateProgram, "nvrtcCreateProgram", int,                                                       \
	  (rlx_handle *, const char *, const char *, int, const char **, const char **))                       \
	X(nvrtcCompileProgram, "nvrtcCompileProgram", int, (rlx_handle, int, const char **))                   \
	X(nvrtcGetCUBINSize, "nvrtcGetCUBINSize", int, (rlx_handle, size_t *))                                 \
	X(nvrtcGetCUBIN, "nvrtcGetCUBIN", int, (rlx_handle, char *))                                           \
	X(nvrtcGetPTXSize, "nvrtcGetPTXSize", int, (rlx_handle, size_t *))                                     \
	X(nvrtcGetPTX, "nvrtcGetPTX", int, (rlx_handle, char *))                                               \
	X(nvrtcGetProgramLogSize, "nvrtcGetProgramLogSize", int, (rlx_handle, size_t *))                       \
	X(nvrtcGetProgramLog, "nvrtcGetProgramLog", int, (rlx_handle, char *))                                 \
	X(nvrtcDestroyProgram, "nvrtcDestroyProgram", int, (rlx_handle *))                                     \
	X(nvrtcGetErrorString, "nvrtcGetErrorString", const char *, (int))

// cublasLt, which is optional. Handles of it are rlx_handle, element types and
// attributes numbers.
#define RLX_BLAS(X)                                                                                        \
	X(create, "cublasLtCreate", int, (rlx_handle *))                                                       \
	X(version, "cublasLtGetVersion", size_t, (void))                                                       \
	X(status_name, "cublasLtGetStatusName", const char *, (int))                                           \
	X(operation_create, "cublasLtMatmulDescCreate", int, (rlx_handle *, int, int))                         \
	X(operation_set, "cublasLtMatmulDescSetAttribute", int, (rlx_handle, int, const void *, size_t))       \
	X(operation_destroy, "cublasLtMatmulDescDestroy", int, (rlx_handle))                                   \
	X(layout_create, "cublasLtMatrixLayoutCreate", int, (rlx_handle *, int, uint64_t, uint64_t, int64_t))  \
	X(layout_set, "cublasLtMatrixLayoutSetAttribute", int, (rlx_handle, int, const void *, size_t))        \
	X(layout_destroy, "cublasLtMatrixLayoutDestroy", int, (rlx_handle))                                    \
	X(preference_create, "cublasLtMatmulPreferenceCreate", int, (rlx_handle *))                            \
	X(preference_set, "cublasLtMatmulPreferenceSetAttribute", int, (rlx_handle, int, const void *, size_t)) \
	X(preference_destroy, "cublasLtMatmulPreferenceDestroy", int, (rlx_handle))                            \
	X(heuristic, "cublasLtMatmulAlgoGetHeuristic", int,                                                    \
	  (rlx_handle, rlx_handle, rlx_handle, rlx_handle, rlx_handle, rlx_handle, rlx_handle, int, void *, int *)) \
	X(matmul, "cublasLtMatmul", int,                                                                       \
	  (rlx_handle, rlx_handle, const void *, rlx_ptr, rlx_handle, rlx_ptr, rlx_handle, const void *, rlx_ptr, rlx_handle, rlx_ptr, \
	   rlx_handle, const void *, rlx_ptr, size_t, rlx_handle))

// cuSOLVER, which is optional: its functions for all element types, which are cudaDataType_t, on matrices by columns.
#define RLX_SOLVER(X)                                                                                      \
	X(create, "cusolverDnCreate", int, (rlx_handle *))                                                     \
	X(destroy, "cusolverDnDestroy", int, (rlx_handle))                                                     \
	X(create_params, "cusolverDnCreateParams", int, (rlx_handle *))                                        \
	X(destroy_params, "cusolverDnDestroyParams", int, (rlx_handle))                                        \
	X(set_stream, "cusolverDnSetStream", int, (rlx_handle, rlx_handle))                                    \
	X(cholesky_size, "cusolverDnXpotrf_bufferSize", int,                                                   \
	  (rlx_handle, rlx_handle, int, int64_t, int, rlx_ptr, int64_t, int, size_t *, size_t *))              \
	X(cholesky, "cusolverDnXpotrf", int,                                                                   \
	  (rlx_handle, rlx_handle, int, int64_t, int, rlx_ptr, int64_t, int, rlx_ptr, size_t, void *, size_t, rlx_ptr)) \
	X(lu_size, "cusolverDnXgetrf_bufferSize", int,                                                         \
	  (rlx_handle, rlx_handle, int64_t, int64_t, int, rlx_ptr, int64_t, int, size_t *, size_t *))          \
	X(lu, "cusolverDnXgetrf", int,                                                                         \
	  (rlx_handle, rlx_handle, int64_t, int64_t, int, rlx_ptr, int64_t, rlx_ptr, int, rlx_ptr, size_t, void *, size_t, rlx_ptr)) \
	X(householder_size, "cusolverDnXgeqrf_bufferSize", int,                                                \
	  (rlx_handle, rlx_handle, int64_t, int64_t, int, rlx_ptr, int64_t, int, rlx_ptr, int, size_t *, size_t *)) \
	X(householder, "cusolverDnXgeqrf", int,                                                                \
	  (rlx_handle, rlx_handle, int64_t, int64_t, int, rlx_ptr, int64_t, int, rlx_ptr, int, rlx_ptr, size_t, void *, size_t, rlx_ptr)) \
	X(eigen_size, "cusolverDnXsyevd_bufferSize", int,                                                      \
	  (rlx_handle, rlx_handle, int, int, int64_t, int, rlx_ptr, int64_t, int, rlx_ptr, int, size_t *, size_t *)) \
	X(eigen, "cusolverDnXsyevd", int,                                                                      \
	  (rlx_handle, rlx_handle, int, int, int64_t, int, rlx_ptr, int64_t, int, rlx_ptr, int, rlx_ptr, size_t, void *, size_t, rlx_ptr))

// NCCL, or RCCL, which is optional. Its unique id is passed by value.
typedef struct { char bytes[128]; } rlx_nccl_id;
#define RLX_NCCL(X)                                                                                        \
	X(version, "ncclGetVersion", int, (int *))                                                             \
	X(error_text, "ncclGetErrorString", const char *, (int))                                               \
	X(unique_id, "ncclGetUniqueId", int, (rlx_nccl_id *))                                                  \
	X(init, "ncclCommInitRankConfig", int, (rlx_handle *, int, rlx_nccl_id, int, void *))                  \
	X(destroy, "ncclCommDestroy", int, (rlx_handle))                                                       \
	X(abort, "ncclCommAbort", int, (rlx_handle))                                                           \
	X(async_error, "ncclCommGetAsyncError", int, (rlx_handle, int *))                                      \
	X(last_error, "ncclGetLastError", const char *, (rlx_handle))                                          \
	X(all_reduce, "ncclAllReduce", int, (rlx_ptr, rlx_ptr, size_t, int, int, rlx_handle, rlx_handle))      \
	X(all_gather, "ncclAllGather", int, (rlx_ptr, rlx_ptr, size_t, int, rlx_handle, rlx_handle))           \
	X(reduce_scatter, "ncclReduceScatter", int, (rlx_ptr, rlx_ptr, size_t, int, int, rlx_handle, rlx_handle)) \
	X(broadcast, "ncclBroadcast", int, (rlx_ptr, rlx_ptr, size_t, int, int, rlx_handle, rlx_handle))       \
	X(send, "ncclSend", int, (rlx_ptr, size_t, int, int, rlx_handle, rlx_handle))                          \
	X(recv, "ncclRecv", int, (rlx_ptr, size_t, int, int, rlx_handle, rlx_handle))                          \
	X(group_start, "ncclGroupStart", int, (void))                                                          \
	X(group_end, "ncclGroupEnd", int, (void))

#define RLX_FIELD(name, symbol, result, params) result(*name) params;
typedef struct rlx_cuda { RLX_DRIVER(RLX_FIELD) RLX_BRANCHES(RLX_FIELD) RLX_EDITS(RLX_FIELD) RLX_WALLS(RLX_FIELD) RLX_ATTRIBUTES(RLX_FIELD) RLX_PRIORITIES(RLX_FIELD) int branches, edits, guards, attributes, priorities; } rlx_cuda;
typedef struct rlx_nvrtc { RLX_NVRTC(RLX_FIELD) } rlx_nvrtc;
typedef struct rlx_blas { RLX_BLAS(RLX_FIELD) } rlx_blas;
typedef struct rlx_solver { RLX_SOLVER(RLX_FIELD) } rlx_solver;
typedef struct rlx_nccl { RLX_NCCL(RLX_FIELD) } rlx_nccl;
#undef RLX_FIELD

// They load a library by its path and return its functions, or null with the
// reason in why. Libraries stay loaded.
rlx_cuda *rlx_load_cuda(const char *path, char *why, size_t why_len);
rlx_nvrtc *rlx_load_nvrtc(const char *path, char *why, size_t why_len);
rlx_blas *rlx_load_blas(const char *path, char *why, size_t why_len);
rlx_solver *rlx_load_solver(const char *path, char *why, size_t why_len);
rlx_nccl *rlx_load_nccl(const char *path, char *why, size_t why_len);
int rlx_preload(const char *path);

// rlx_device is a context and the functions to use it with. The driver keeps
// the current context by thread, and Go moves between threads, so that every
// call sets it.
typedef struct {
	const rlx_cuda *cu;
	rlx_handle context;
	int number; // CUdevice
} rlx_device;

#define RLX_CALL(name, params, args)                            \
	static inline int rlx_##name params {                       \
		int code = d->cu->cuCtxSetCurrent(d->context);          \
		return code ? code : d->cu->name args;                  \
	}

RLX_CALL(cuMemGetInfo, (rlx_device *d, size_t *free, size_t *total), (free, total))
RLX_CALL(cuMemAlloc, (rlx_device *d, rlx_ptr *p, size_t bytes), (p, bytes))
RLX_CALL(cuMemFree, (rlx_device *d, rlx_ptr p), (p))
RLX_CALL(cuMemHostAlloc, (rlx_device *d, void **p, size_t bytes), (p, bytes, 0))
RLX_CALL(cuMemFreeHost, (rlx_device *d, void *p), (p))
RLX_CALL(cuMemcpyHtoDAsync, (rlx_device *d, rlx_ptr to, const void *from, size_t bytes, rlx_handle s), (to, from, bytes, s))
RLX_CALL(cuMemcpyDtoHAsync, (rlx_device *d, void *to, rlx_ptr from, size_t bytes, rlx_handle s), (to, from, bytes, s))
RLX_CALL(cuMemcpyDtoDAsync, (rlx_device *d, rlx_ptr to, rlx_ptr from, size_t bytes, rlx_handle s), (to, from, bytes, s))
RLX_CALL(cuMemsetD32Async, (rlx_device *d, rlx_ptr p, unsigned value, size_t words, rlx_handle s), (p, value, words, s))
RLX_CALL(cuStreamCreate, (rlx_device *d, rlx_handle *s), (s, 1))
RLX_CALL(cuStreamDestroy, (rlx_device *d, rlx_handle s), (s))
RLX_CALL(cuStreamSynchronize, (rlx_device *d, rlx_handle s), (s))
RLX_CALL(cuStreamWaitEvent, (rlx_device *d, rlx_handle s, rlx_handle event), (s, event, 0))
RLX_CALL(cuStreamBeginCapture, (rlx_device *d, rlx_handle s), (s, 1))
RLX_CALL(cuStreamEndCapture, (rlx_device *d, rlx_handle s, rlx_handle *graph), (s, graph))
RLX_CALL(cuGraphInstantiate, (rlx_device *d, rlx_handle *exec, rlx_handle graph, unsigned flags), (exec, graph, flags))
RLX_CALL(cuGraphLaunch, (rlx_device *d, rlx_handle exec, rlx_handle s), (exec, s))
RLX_CALL(cuGraphExecDestroy, (rlx_device *d, rlx_handle exec), (exec))
RLX_CALL(cuGraphDestroy, (rlx_device *d, rlx_handle graph), (graph))
RLX_CALL(cuEventCreate, (rlx_device *d, rlx_handle *event, unsigned flags), (event, flags))
RLX_CALL(cuEventRecord, (rlx_device *d, rlx_handle event, rlx_handle s), (event, s))
RLX_CALL(cuEventQuery, (rlx_device *d, rlx_handle event), (event))
RLX_CALL(cuEventElapsedTime, (rlx_device *d, float *ms, rlx_handle from, rlx_handle to), (ms, from, to))
RLX_CALL(cuEventDestroy, (rlx_device *d, rlx_handle event), (event))
RLX_CALL(cuModuleLoadData, (rlx_device *d, rlx_handle *module, const void *image), (module, image, 0, 0, 0))
RLX_CALL(cuModuleGetFunction, (rlx_device *d, rlx_handle *f, rlx_handle module, const char *name), (f, module, name))
RLX_CALL(cuFuncSetAttribute, (rlx_device *d, rlx_handle f, int which, int value), (f, which, value))
RLX_CALL(cuModuleUnload, (rlx_device *d, rlx_handle module), (module))
#undef RLX_CALL

// rlx_describe finds and describes a device; rlx_retain retains its primary context.
typedef struct {
	char name[256];
	int major, minor, multiprocessors, clock_khz, shared;
	int memory_khz, bus_bits, cache; // 0 if unknown
	size_t memory;
} rlx_info;
int rlx_describe(const rlx_cuda *cu, int ordinal, rlx_device *device, rlx_info *info, const char **call);
static inline int rlx_retain(rlx_device *d) { return d->cu->cuDevicePrimaryCtxRetain(&d->context, d->number); }

// rlx_launch starts a kernel whose parameters are consecutive in params:
// 8-byte pointers, 4-byte numbers, then tensor maps. If early is set it may start before the kernel
// before it in the stream has ended.
int rlx_launch(rlx_device *d, rlx_handle f, const unsigned *grid, const unsigned *block, rlx_handle stream,
               unsigned shared, int early, char *params, int pointers, int numbers, int maps);

// rlx_map_bytes is the size of a tensor map, CUtensorMap, and how its address is aligned
// while it is made.
enum { rlx_map_bytes = 128, rlx_map_alignment = 64 };

// rlx_node_priority sets the priority of a node if it is a kernel.
int rlx_node_priority(rlx_device *d, rlx_handle node, int priority);

// rlx_view is a view of an array and how it is copied: strides are in bytes, of the axes after the first; size is the tile of a copy
// or, in im2col mode, its channels and pixels; step the distance of neighbours along each axis; lower and upper are the corners of the
// pixels, by spatial axis.
typedef struct {
	int type, im2col;
	unsigned axes, size[5], step[5];
	rlx_ptr address;
	uint64_t dims[5], strides[5];
	int lower[3], upper[3];
} rlx_view;

// rlx_map_encode makes the tensor map of a view with a 128-byte swizzle and zero fill out of bounds.
int rlx_map_encode(rlx_device *d, void *map, const rlx_view *view);

// rlx_condition_make makes the handle of a condition in the graph that a stream captures.
// rlx_condition_enter adds a node that runs a subgraph if, or while (loop), the condition is not 0,
// and makes inner capture that subgraph.
int rlx_condition_make(rlx_device *d, rlx_handle stream, unsigned long long *condition);
int rlx_condition_enter(rlx_device *d, rlx_handle stream, rlx_handle inner, unsigned long long condition, int loop, const char **call);

// rlx_dependencies_get returns the capture dependencies of a stream, at most count;
// rlx_dependencies_set sets them.
int rlx_dependencies_get(rlx_device *d, rlx_handle stream, rlx_handle *nodes, size_t most, size_t *count);
int rlx_dependencies_set(rlx_device *d, rlx_handle stream, rlx_handle *nodes, size_t count);
static inline int rlx_branches(const rlx_cuda *cu) { return cu->branches; }

// rlx_fills_to_kernels replaces each fill node of a graph by a kernel with parameters (to,
// width, rows, pitch, word).
int rlx_fills_to_kernels(rlx_device *d, rlx_handle graph, rlx_handle fill, const char **call);
// rlx_count_nodes adds to kinds how many nodes a graph has of each kind, by
// CUgraphNodeType.
int rlx_count_nodes(rlx_device *d, rlx_handle graph, int *kinds, int most, const char **call);
static inline int rlx_edits(const rlx_cuda *cu) { return cu->edits; }

// rlx_guarded is memory with unmapped addresses on either side.
typedef struct {
	rlx_ptr range, at;     // of all addresses, and of the mapped ones
	size_t reserved, bytes; // of the two
	unsigned long long memory;
} rlx_guarded;
int rlx_guarded_make(rlx_device *d, size_t bytes, rlx_guarded *w, const char **call);
int rlx_guarded_free(rlx_device *d, const rlx_guarded *w, const char **call);
static inline int rlx_has_guards(const rlx_cuda *cu) { return cu->guards; }

// rlx_compile returns a cubin, or PTX if ptx is set, in image, or a log if the result is not
// 0. The caller frees both.
int rlx_compile(const rlx_nvrtc *rtc, const char *source, const char **options, int count, int ptx, char **image, size_t *size, char **log);

// rlx_shape is a matrix product with cublasLt's column-major layout: first (m×k) times second
// (k×n). row is the leading dimension, step the batch stride.
typedef struct {
	int compute, factors, result; // cublasComputeType_t, cudaDataType_t
	int transposed[2];
	uint64_t m, n, k, workspace;
	int32_t batch;
	int64_t row[4], step[4]; // of first, second, the result, and what is added
	int32_t epilogue, adds;  // cublasLtEpilogue_t, and whether something is added
} rlx_shape;

// Of cublasLtEpilogue_t.
enum { rlx_epilogue_none = 1, rlx_epilogue_bias = 4 };

// rlx_product is a product ready to run.
typedef struct {
	rlx_handle operation, layout[4];
	uint64_t workspace;
	int32_t epilogue, adds;
	char algorithm[64];
} rlx_product;

// rlx_no_algorithm is the result of rlx_product_make if the library has no algorithm.
enum { rlx_no_algorithm = -1 };
int rlx_blas_create(const rlx_blas *blas, rlx_device *d, rlx_handle *handle);
int rlx_product_make(const rlx_blas *blas, rlx_handle handle, rlx_device *d, const rlx_shape *s, rlx_product *p, const char **call);
int rlx_product_run(const rlx_blas *blas, rlx_handle handle, rlx_device *d, const rlx_product *p, rlx_ptr first, rlx_ptr second,
                    rlx_ptr workspace, rlx_ptr result, rlx_ptr bias, rlx_ptr added, rlx_handle stream);
static inline const char *rlx_blas_status(const rlx_blas *blas, int code) { return blas->status_name(code); }
static inline size_t rlx_blas_version(const rlx_blas *blas) { return blas->version(); }

// rlx_factor is a factorisation: op by routine.FactorOp, type a cudaDataType_t of element bytes. The workspaces are
// of the device and of the host.
typedef struct {
	int op, type, batch;
	int64_t rows, columns, element;
	size_t workspace, host_bytes;
	void *host;
} rlx_factor;

// rlx_solver_create makes a handle and its parameters; rlx_factor_size sets the sizes of the workspaces.
int rlx_solver_create(const rlx_solver *solver, rlx_device *d, rlx_handle *handle, rlx_handle *params, const char **call);
int rlx_solver_destroy(const rlx_solver *solver, rlx_device *d, rlx_handle handle, rlx_handle params, const char **call);
int rlx_factor_size(const rlx_solver *solver, rlx_device *d, rlx_handle handle, rlx_handle params, rlx_factor *f, const char **call);
int rlx_factor_run(const rlx_solver *solver, rlx_device *d, rlx_handle handle, rlx_handle params, const rlx_factor *f, rlx_ptr matrices,
                   rlx_ptr others, rlx_ptr codes, rlx_ptr workspace, rlx_handle stream, const char **call);

// rlx_collective is a collective of one rank: op by routine.CollectiveOp, types and reductions by
// nccl.h, count the elements that ncclAllReduce and its like take. sender and receiver are those of
// this rank in a permutation, -1 without one; bytes is the size of the array that the rank sends.
typedef struct {
	int op, type, reduction, rank, size, root, sender, receiver;
	size_t count, bytes;
} rlx_collective;
int rlx_nccl_init(const rlx_nccl *n, rlx_device *d, rlx_handle *comm, int size, const char *id, int rank);
int rlx_nccl_run(const rlx_nccl *n, rlx_device *d, rlx_handle comm, const rlx_collective *x, rlx_ptr send, rlx_ptr recv,
                 rlx_handle stream, const char **call);
int rlx_nccl_abort(const rlx_nccl *n, rlx_device *d, rlx_handle comm);
int rlx_nccl_destroy(const rlx_nccl *n, rlx_device *d, rlx_handle comm);
static inline int rlx_nccl_version(const rlx_nccl *n, int *version) { return n->version(version); }
static inline int rlx_nccl_unique_id(const rlx_nccl *n, char *id) { return n->unique_id((rlx_nccl_id *)id); }
static inline int rlx_nccl_async_error(const rlx_nccl *n, rlx_handle comm, int *code) { return n->async_error(comm, code); }
static inline const char *rlx_nccl_text(const rlx_nccl *n, int code) { return n->error_text(code); }
static inline const char *rlx_nccl_last(const rlx_nccl *n, rlx_handle comm) { return n->last_error(comm); }

const char *rlx_error_name(const rlx_cuda *cu, int code);
const char *rlx_error_text(const rlx_cuda *cu, int code);
static inline int rlx_nvrtc_version(const rlx_nvrtc *rtc, int *major, int *minor) { return rtc->nvrtcVersion(major, minor); }
static inline int rlx_nvrtc_count(const rlx_nvrtc *rtc, int *count) { return rtc->nvrtcGetNumSupportedArchs(count); }
static inline int rlx_nvrtc_capabilities(const rlx_nvrtc *rtc, int *list) { return rtc->nvrtcGetSupportedArchs(list); }
static inline const char *rlx_nvrtc_error(const rlx_nvrtc *rtc, int code) { return rtc->nvrtcGetErrorString(code); }
static inline int rlx_init(const rlx_cuda *cu) { return cu->cuInit(0); }
static inline int rlx_version(const rlx_cuda *cu, int *version) { return cu->cuDriverGetVersion(version); }
static inline int rlx_count(const rlx_cuda *cu, int *count) { return cu->cuDeviceGetCount(count); }

// RLX_TRY calls a function of the driver unless one before has failed: r is the code of the
// first that did, and *call its name.
#define RLX_TRY(function, args) \
	if (!r) *call = #function, r = cu->function args

#endif
