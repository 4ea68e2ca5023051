// The C functions through which package driver calls Metal, implemented in the Objective-C
// files next to this one.
#ifndef RLX_BINDING_H
#define RLX_BINDING_H

#include <stddef.h>
#include <stdint.h>

// The kinds of rlx_error.
enum {
	RLX_OK,
	RLX_UNAVAILABLE, // no device, or one that is too old
	RLX_MEMORY,      // out of memory
	RLX_SOURCE,      // the compiler refuses a kernel
	RLX_LOST,        // the device is gone
	RLX_FAILED,      // anything else
};

// rlx_error is a failure. code is Metal's error code, of the domain of the call.
typedef struct {
	int kind;
	long code;
	char text[2048];
} rlx_error;

// rlx_info describes a device. Sizes are in bytes.
typedef struct {
	char name[128];
	uint64_t memory;    // recommended maximal working set
	uint64_t allocated; // by this process
	uint64_t buffer;    // maximal length of a buffer
	uint64_t shared;    // memory of a threadgroup
	uint64_t threads[3]; // of a threadgroup along each axis
	int bfloat;          // the compiler supports bfloat
} rlx_info;

// RLX_BUFFERS is the length of the buffer argument table (Metal Feature Set Tables).
enum { RLX_BUFFERS = 31 };

// RLX_SIMD_GROUP is the number of threads of a SIMD-group that kernels are printed for.
enum { RLX_SIMD_GROUP = 32 };

// rlx_binding is a place in a buffer.
typedef struct {
	void *buffer;
	uint64_t offset;
} rlx_binding;

// rlx_command is a command: a dispatch if pipeline is not NULL, else a copy of bytes from
// bindings[1] to bindings[0].
typedef struct {
	void *pipeline;
	const rlx_binding *bindings;
	const int32_t *counters; // bound after the buffers, as constant memory
	uint32_t binding_count, counter_count;
	uint32_t groups[3], threads[3];
	rlx_binding grid; // where the groups are, three uint32_t, if its buffer is not NULL
	int piece;         // of a grid: first is bound behind the counters, and behind it the grid, of which only
	uint32_t first[3]; // whether it is zeros counts, or where there is none a uint32_t that is 1
	uint64_t bytes;
} rlx_command;

// rlx_run is a committed command buffer. state changes once from RLX_RUNNING to another
// value, after error was written; it is read atomically.
enum { RLX_RUNNING, RLX_DONE, RLX_BROKEN };
typedef struct {
	uint32_t state;
	uint32_t users; // of the struct: the caller, and Metal until it is done
	rlx_error error;
} rlx_run;

// rlx_metal is the table of functions. Those that can fail return NULL or 0 and fill in the
// error. Objects are released with release.
typedef struct {
	// open returns the device, with a queue.
	void *(*open)(rlx_error *);
	void (*info)(void *device, rlx_info *);
	// heap allocates buffers together, in memory shared by host and device, with undefined
	// contents, and writes them to buffers. drop releases a heap and its buffers. Calls of
	// the two must be serialised.
	void *(*heap)(void *device, const uint64_t *bytes, size_t count, void **buffers, rlx_error *);
	void (*drop)(void *device, void *heap, void **buffers, size_t count);
	void *(*contents)(void *buffer);
	// archive opens a file of compiled pipelines, or a new archive.
	void *(*archive)(void *device, const char *path, rlx_error *);
	int (*save)(void *archive, const char *path, rlx_error *);
	// function compiles a source and returns its kernel with a name.
	void *(*function)(void *device, const char *source, const char *name, rlx_error *);
	// pipeline compiles a function for threadgroups of the given number of threads.
	// archive, if not NULL, is searched first; if add is set the pipeline is added to it.
	void *(*pipeline)(void *device, void *function, uint64_t threads, void *archive, int add, rlx_error *);
	// commit encodes a list as one command buffer and begins it.
	rlx_run *(*commit)(void *device, const char *label, const rlx_command *list, size_t count, rlx_error *);
	// forget releases a run, which may be in flight.
	void (*forget)(rlx_run *);
	void (*release)(void *object);
} rlx_metal;

// rlx_metal_binding returns the functions of this system's Metal.
const rlx_metal *rlx_metal_binding(void);

#endif
