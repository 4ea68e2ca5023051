//go:build amd64 || arm64

#include "cuda_linux.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// function is an entry of a table of functions: its symbol in a library, and where the table has
// its address.
typedef struct {
	const char *symbol;
	size_t offset;
} function;

#define RLX_FUNCTION(name, symbol, result, params) {symbol, offsetof(functions, name)},

// look_up stores the addresses of functions in a table. It returns the first symbol that the
// library lacks, or null.
static const char *look_up(void *lib, void *table, const function *list, size_t count) {
	const char *missing = 0;
	for (size_t i = 0; i < count; i++) {
		void *address = dlsym(lib, list[i].symbol);
		if (!address && !missing) missing = list[i].symbol;
		memcpy((char *)table + list[i].offset, &address, sizeof address);
	}
	return missing;
}

static void *open_library(const char *path, char *why, size_t why_len) {
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) snprintf(why, why_len, "%s", dlerror());
	return lib;
}

// load returns a table of the given size with a list of functions of a library. It returns null,
// with the reason in why, where the library lacks one.
static void *load(void *lib, const char *path, const function *list, size_t count, size_t size, char *why, size_t why_len) {
	void *table = malloc(size);
	const char *missing = look_up(lib, table, list, count);
	if (!missing) return table;
	snprintf(why, why_len, "%s lacks %s", path, missing);
	free(table);
	return 0;
}

#define RLX_COUNT(list) (sizeof(list) / sizeof *(list))

// RLX_LOADER defines rlx_load_library, which returns a table of the functions in a list.
#define RLX_LOADER(library, LIST)                                                          \
	rlx_##library *rlx_load_##library(const char *path, char *why, size_t why_len) {       \
		typedef rlx_##library functions;                                                   \
		static const function list[] = {LIST(RLX_FUNCTION)};                               \
		void *lib = open_library(path, why, why_len);                                      \
		return lib ? load(lib, path, list, RLX_COUNT(list), sizeof(functions), why, why_len) : 0; \
	}

RLX_LOADER(nvrtc, RLX_NVRTC)
RLX_LOADER(blas, RLX_BLAS)
RLX_LOADER(solver, RLX_SOLVER)
RLX_LOADER(nccl, RLX_NCCL)

rlx_cuda *rlx_load_cuda(const char *path, char *why, size_t why_len) {
	typedef rlx_cuda functions;
	static const function list[] = {RLX_DRIVER(RLX_FUNCTION)};
	static const function branches[] = {RLX_BRANCHES(RLX_FUNCTION)};
	static const function edits[] = {RLX_EDITS(RLX_FUNCTION)};
	static const function guards[] = {RLX_WALLS(RLX_FUNCTION)};
	static const function attributes[] = {RLX_ATTRIBUTES(RLX_FUNCTION)};
	static const function priorities[] = {RLX_PRIORITIES(RLX_FUNCTION)};
	void *lib = open_library(path, why, why_len);
	rlx_cuda *table = lib ? load(lib, path, list, RLX_COUNT(list), sizeof *table, why, why_len) : 0;
	if (!table) return 0;
	table->branches = !look_up(lib, table, branches, RLX_COUNT(branches));
	table->edits = !look_up(lib, table, edits, RLX_COUNT(edits));
	table->guards = !look_up(lib, table, guards, RLX_COUNT(guards));
	table->attributes = !look_up(lib, table, attributes, RLX_COUNT(attributes));
	table->priorities = !look_up(lib, table, priorities, RLX_COUNT(priorities));
	return table;
}

int rlx_preload(const char *path) { return dlopen(path, RTLD_NOW | RTLD_GLOBAL) == 0; }

int rlx_describe(const rlx_cuda *cu, int ordinal, rlx_device *device, rlx_info *info, const char **call) {
	int r = 0, number = 0;
	RLX_TRY(cuDeviceGet, (&number, ordinal));
	RLX_TRY(cuDeviceGetName, (info->name, sizeof info->name, number));
	RLX_TRY(cuDeviceGetAttribute, (&info->major, 75, number));
	RLX_TRY(cuDeviceGetAttribute, (&info->minor, 76, number));
	RLX_TRY(cuDeviceGetAttribute, (&info->multiprocessors, 16, number));
	RLX_TRY(cuDeviceGetAttribute, (&info->clock_khz, 13, number));
	RLX_TRY(cuDeviceGetAttribute, (&info->shared, 97, number));
	RLX_TRY(cuDeviceTotalMem, (&info->memory, number));
	const int optional[] = {36, 37, 38};
	int *const values[] = {&info->memory_khz, &info->bus_bits, &info->cache};
	for (int i = 0; i < 3; i++) {
		*values[i] = 0;
		if (cu->cuDeviceGetAttribute(values[i], optional[i], number)) *values[i] = 0;
	}
	device->cu = cu;
	device->number = number;
	return r;
}

// rlx_attribute is a CUlaunchAttribute, and rlx_config a CUlaunchConfig: see cuda.h.
typedef struct {
	int kind, pad;
	union {
		int number;
		char bytes[64];
	} value;
} rlx_attribute;

typedef struct {
	unsigned grid[3], block[3], shared;
	rlx_handle stream;
	rlx_attribute *attributes;
	unsigned count;
} rlx_config;

int rlx_launch(rlx_device *d, rlx_handle f, const unsigned *grid, const unsigned *block, rlx_handle stream,
               unsigned shared, int early, char *params, int pointers, int numbers, int maps) {
	void *args[pointers + numbers + maps + 1];
	for (int i = 0; i < pointers; i++) args[i] = params + 8 * i;
	for (int i = 0; i < numbers; i++) args[pointers + i] = params + 8 * pointers + 4 * i;
	for (int i = 0; i < maps; i++) args[pointers + numbers + i] = params + 8 * pointers + 4 * numbers + rlx_map_bytes * i;
	int r = d->cu->cuCtxSetCurrent(d->context);
	if (r) return r;
	if (early) {
		enum { programmatic_stream_serialization = 6 };
		rlx_attribute a = {.kind = programmatic_stream_serialization, .value.number = 1};
		rlx_config c = {.shared = shared, .stream = stream, .attributes = &a, .count = 1};
		memcpy(c.grid, grid, sizeof c.grid);
		memcpy(c.block, block, sizeof c.block);
		return d->cu->cuLaunchKernelEx(&c, f, args, 0);
	}
	return d->cu->cuLaunchKernel(f, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, stream, args, 0);
}

int rlx_node_priority(rlx_device *d, rlx_handle node, int priority) {
	enum { kernel = 0, attribute = 8 };
	union {
		int number;
		char bytes[64];
	} value = {.number = priority};
	int type = kernel, r = d->cu->cuCtxSetCurrent(d->context);
	if (!r) r = d->cu->cuGraphNodeGetType(node, &type);
	return r || type != kernel ? r : d->cu->cuGraphKernelNodeSetAttribute(node, attribute, &value);
}

int rlx_map_encode(rlx_device *d, void *map, const rlx_view *v) {
	enum { not_interleaved = 0, swizzle_of_128_bytes = 3, promotion_to_128_bytes = 2, zeros = 0 };
	_Alignas(rlx_map_alignment) char made[rlx_map_bytes];
	int r = d->cu->cuCtxSetCurrent(d->context);
	if (!r && v->im2col)
		r = d->cu->cuTensorMapEncodeIm2col(made, v->type, v->axes, v->address, v->dims, v->strides, v->lower, v->upper, v->size[0], v->size[1], v->step,
		                                   not_interleaved, swizzle_of_128_bytes, promotion_to_128_bytes, zeros);
	else if (!r)
		r = d->cu->cuTensorMapEncodeTiled(made, v->type, v->axes, v->address, v->dims, v->strides, v->size, v->step, not_interleaved,
		                                  swizzle_of_128_bytes, promotion_to_128_bytes, zeros);
	if (!r) memcpy(map, made, sizeof made);
	return r;
}

// rlx_node is CUgraphNodeParams of a conditional node: 256 bytes, see cuda.h.
typedef struct {
	int type, reserved[3];
	unsigned long long condition;
	int kind;
	unsigned count;
	rlx_handle *body; // filled in: the graphs of the node
	rlx_handle context;
	unsigned long long rest[26];
} rlx_node;

int rlx_condition_make(rlx_device *d, rlx_handle stream, unsigned long long *condition) {
	const rlx_cuda *cu = d->cu;
	int status;
	rlx_handle graph;
	int r = cu->cuCtxSetCurrent(d->context);
	if (!r) r = cu->cuStreamGetCaptureInfo(stream, &status, 0, &graph, 0, 0);
	return r ? r : cu->cuGraphConditionalHandleCreate(condition, graph, d->context, 0, 0);
}

int rlx_condition_enter(rlx_device *d, rlx_handle stream, rlx_handle inner, unsigned long long condition, int loop, const char **call) {
	enum { conditional_node = 13, set_dependencies = 1, mode_of_a_thread = 1 };
	const rlx_cuda *cu = d->cu;
	rlx_node params = {.type = conditional_node, .condition = condition, .kind = loop, .count = 1, .context = d->context};
	int status, r = 0;
	rlx_handle graph, node;
	const rlx_handle *before;
	size_t count;
	RLX_TRY(cuCtxSetCurrent, (d->context));
	RLX_TRY(cuStreamGetCaptureInfo, (stream, &status, 0, &graph, &before, &count));
	RLX_TRY(cuGraphAddNode, (&node, graph, before, count, &params));
	RLX_TRY(cuStreamUpdateCaptureDependencies, (stream, &node, 1, set_dependencies));
	RLX_TRY(cuStreamBeginCaptureToGraph, (inner, params.body[0], 0, 0, 0, mode_of_a_thread));
	return r;
}

int rlx_dependencies_get(rlx_device *d, rlx_handle stream, rlx_handle *nodes, size_t most, size_t *count) {
	int status, r = d->cu->cuCtxSetCurrent(d->context);
	const rlx_handle *before = 0;
	if (!r) r = d->cu->cuStreamGetCaptureInfo(stream, &status, 0, 0, &before, count);
	for (size_t i = 0; !r && i < *count && i < most; i++) nodes[i] = before[i];
	return r;
}

int rlx_dependencies_set(rlx_device *d, rlx_handle stream, rlx_handle *nodes, size_t count) {
	enum { set_dependencies = 1 };
	int r = d->cu->cuCtxSetCurrent(d->context);
	return r ? r : d->cu->cuStreamUpdateCaptureDependencies(stream, nodes, count, set_dependencies);
}

static void take_log(const rlx_nvrtc *rtc, rlx_handle program, char **log) {
	size_t n = 0;
	if (rtc->nvrtcGetProgramLogSize(program, &n) != 0 || n == 0) return;
	*log = calloc(1, n + 1);
	rtc->nvrtcGetProgramLog(program, *log);
}

int rlx_compile(const rlx_nvrtc *rtc, const char *source, const char **options, int count, int ptx, char **image, size_t *size, char **log) {
	rlx_handle program;
	int r = rtc->nvrtcCreateProgram(&program, source, "kernel.cu", 0, 0, 0);
	if (r) return r;
	r = rtc->nvrtcCompileProgram(program, count, options);
	if (r) take_log(rtc, program, log);
	if (!r) r = ptx ? rtc->nvrtcGetPTXSize(program, size) : rtc->nvrtcGetCUBINSize(program, size);
	if (!r) {
		*image = malloc(*size);
		r = ptx ? rtc->nvrtcGetPTX(program, *image) : rtc->nvrtcGetCUBIN(program, *image);
	}
	rtc->nvrtcDestroyProgram(&program);
	return r;
}

const char *rlx_error_name(const rlx_cuda *cu, int code) {
	const char *text = 0;
	return cu->cuGetErrorName(code, &text) == 0 && text ? text : "unknown error";
}

const char *rlx_error_text(const rlx_cuda *cu, int code) {
	const char *text = 0;
	return cu->cuGetErrorString(code, &text) == 0 && text ? text : "";
}
