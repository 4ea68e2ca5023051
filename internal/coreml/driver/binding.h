// What package driver asks of Core ML, as functions of C: the files *_darwin.m have them.
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

// rlx_why holds an error text.
typedef struct {
	char text[1024];
} rlx_why;

// The processors, as bits of a set.
enum { RLX_CPU = 1, RLX_GPU = 2, RLX_NEURAL_ENGINE = 4 };

// rlx_system describes the system's Core ML.
typedef struct {
	char version[256]; // of the operating system
	int processors;    // a set
	int neural_cores;
} rlx_system;

// rlx_placement is Core ML's plan for an operation. Long texts are truncated.
typedef struct {
	char kind[64], name[192];
	int preferred; // a processor, 0 for none
	int supported; // a set of them
	double cost;   // negative where there is none
} rlx_placement;

// rlx_coreml is Core ML. Functions that return an int return 0 on success.
typedef struct {
	// system fails if Core ML is too old for models of CoreML8.
	int (*system)(rlx_system *system, rlx_why *why);
	// compile compiles a package to the folder that load takes, among the system's temporary ones.
	// The caller owns the folder and frees its path. It returns NULL on failure.
	char *(*compile)(const char *package, rlx_why *why);
	// load loads a function of a compiled package, NULL for the only one. states is whether it has
	// any. The folder must exist as long as the model. It returns NULL on failure.
	void *(*load)(const char *compiled, const char *function, int units, int states, rlx_why *why);
	// predict runs the function and fills the outputs.
	int (*predict)(void *model, const rlx_array *in, int inputs, rlx_array *out, int outputs, rlx_why *why);
	// state copies the values of a state to an array, or with write those of the array to the
	// state.
	int (*state)(void *model, const rlx_array *array, int write, rlx_why *why);
	// plan returns the placements of the function's operations, in memory that the caller frees,
	// and their number: -1 on failure, -2 if the system does not support it.
	int (*plan)(void *model, rlx_placement **placements, rlx_why *why);
	// release frees a model.
	void (*release)(void *model);
} rlx_coreml;

const rlx_coreml *rlx_coreml_binding(void);

#endif
