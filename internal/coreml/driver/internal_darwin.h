// What the files of the binding share. Memory is counted by hand: methods that begin with
// new, alloc or init give an object that is released here, others one that the pool
// releases.
#import <CoreML/CoreML.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "binding.h"

// rlx_model is a loaded function.
typedef struct {
	MLModel *model;
	NSObject *state; // an MLState; nil for a function without states
	NSURL *compiled; // the folder that it was loaded from
	MLModelConfiguration *configuration;
	NSString *function;
} rlx_model;

// rlx_coreml_fail records an error and returns NULL.
void *rlx_coreml_fail(rlx_why *why, const char *what, NSError *from);

// rlx_around returns a multi-array on the memory of an array, which must outlive it.
MLMultiArray *rlx_around(const rlx_array *array, NSError **error);

// rlx_move brings the elements of a multi-array to an array of the same type, or with write
// those of the array to it. It returns 0, or 1 for another type.
int rlx_move(MLMultiArray *there, const rlx_array *here, int write, rlx_why *why);

// rlx_processors are processors as a set.
int rlx_processors(NSArray *devices);

// rlx_processor is one of them, 0 for nil and for kinds that are not known.
int rlx_processor(NSObject *device);

int rlx_describe(rlx_system *system, rlx_why *why);
int rlx_plan(void *model, rlx_placement **placements, rlx_why *why);
