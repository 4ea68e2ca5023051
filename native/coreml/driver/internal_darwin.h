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
	NSURL *compiled; // the folder that Core ML made of the package
	MLModelConfiguration *configuration;
	NSString *function;
} rlx_model;

// rlx_fail notes what went wrong and returns NULL.
void *rlx_fail(rlx_why *why, const char *what, NSError *from);

// rlx_processors are processors as a set.
int rlx_processors(NSArray *devices);

// rlx_processor is one of them, 0 for nil and for kinds that are not known.
int rlx_processor(NSObject *device);

int rlx_describe(rlx_system *system, rlx_why *why);
int rlx_plan(void *model, rlx_placement **placements, rlx_why *why);
