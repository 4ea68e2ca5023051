// What package driver asks of Metal, as functions of C: the files of Objective-C beside
// this one have them.
#ifndef RLX_BINDING_H
#define RLX_BINDING_H

#include <stddef.h>
#include <stdint.h>

// The kinds of rlx_error.
enum {
	RLX_OK,
	RLX_UNAVAILABLE, // no device, or one that is too old
	RLX_MEMORY,      // it has no room
	RLX_SOURCE,      // the compiler refuses a kernel
	RLX_LOST,        // the device is gone
	RLX_FAILED,      // anything else
};

// rlx_error is what went wrong. code is Metal's own, of the domain of the call.
typedef struct {
	int kind;
	long code;
	char text[2048];
} rlx_error;

// rlx_info is what the device says of itself. Sizes are in bytes.
typedef struct {
	char name[128];
	uint64_t memory;    // that it recommends to use at most
	uint64_t allocated; // by this process
	uint64_t buffer;    // the longest
	uint64_t shared;    // memory of a threadgroup
	uint64_t threads[3]; // of a threadgroup along each axis
	int bfloat;          // its compiler has the type bfloat
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

// rlx_command is one step of a command list: a dispatch where pipeline is not NULL,
// otherwise a copy of bytes from bindings[1] to bindings[0].
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

// rlx_run is a command buffer that was committed. state goes from RLX_RUNNING to one of
// the others once, after error was written; it is to be read atomically.
enum { RLX_RUNNING, RLX_DONE, RLX_BROKEN };
typedef struct {
	uint32_t state;
	uint32_t users; // of the struct: who asked, and Metal until it is done
	rlx_error error;
} rlx_run;

// rlx_metal are the functions. Those that can fail return NULL, or 0, and fill the
// error. Objects are given back with release.
typedef struct {
	// open returns the device, with a queue.
	void *(*open)(rlx_error *);
	void (*info)(void *device, rlx_info *);
	// heap allocates buffers together, in memory that host and device share, and writes
	// them to buffers. What they hold is undefined. drop gives a heap and its buffers back.
	// Neither is called by two threads at once.
	void *(*heap)(void *device, const uint64_t *bytes, size_t count, void **buffers, rlx_error *);
	void (*drop)(void *device, void *heap, void **buffers, size_t count);
	void *(*contents)(void *buffer);
	// archive opens a file of compiled pipelines, or begins an empty one.
	void *(*archive)(void *device, const char *path, rlx_error *);
	int (*save)(void *archive, const char *path, rlx_error *);
	// function compiles a source, in which it returns the kernel of a name.
	void *(*function)(void *device, const char *source, const char *name, rlx_error *);
	// pipeline makes a function ready to run with so many threads in a threadgroup.
	// archive, where not NULL, is where it looks first; add has it put there.
	void *(*pipeline)(void *device, void *function, uint64_t threads, void *archive, int add, rlx_error *);
	// commit encodes a list as one command buffer and begins it.
	rlx_run *(*commit)(void *device, const char *label, const rlx_command *list, size_t count, rlx_error *);
	// forget gives back a run, which may still be under way.
	void (*forget)(rlx_run *);
	void (*release)(void *object);
} rlx_metal;

// rlx_metal_binding returns the functions of this system's Metal.
const rlx_metal *rlx_metal_binding(void);

#endif
