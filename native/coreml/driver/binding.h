// What package driver asks of Core ML, as functions of C: model_darwin.m has them.
#ifndef RLX_COREML_BINDING_H
#define RLX_COREML_BINDING_H

#include <stddef.h>
#include <stdint.h>

// The element types of arrays, by their numbers in MLMultiArrayDataType.
enum { RLX_FLOAT16 = 65552, RLX_FLOAT32 = 65568, RLX_INT32 = 131104 };

enum { RLX_AXES = 5 };

// rlx_array is an input or an output: dense elements in memory of the caller.
typedef struct {
	const char *name;
	int type;
	int rank;
	int64_t dims[RLX_AXES];
	void *data;
	uint64_t bytes;
} rlx_array;

// rlx_why is room for what went wrong.
typedef struct {
	char text[1024];
} rlx_why;

// rlx_coreml is Core ML. Of functions that return an int, 0 is success.
typedef struct {
	// load compiles a package and loads a function of it, NULL for the only one.
	// states is whether it has any. It returns NULL where that fails.
	void *(*load)(const char *package, const char *function, int units, int states, rlx_why *why);
	// predict runs the function and fills the outputs.
	int (*predict)(void *model, const rlx_array *in, int inputs, rlx_array *out, int outputs, rlx_why *why);
	// release gives back a model and what was compiled for it.
	void (*release)(void *model);
} rlx_coreml;

const rlx_coreml *rlx_coreml_binding(void);

#endif
