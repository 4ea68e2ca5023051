// What the Core ML in software asks of the program that it runs in.
#ifndef RLX_SOFTWARE_H
#define RLX_SOFTWARE_H

#include "binding.h"

// rlx_evaluator computes functions of packages.
typedef struct {
	// load returns a handle, 0 on failure, and the function's inputs and results: arrays in memory
	// of malloc, names too, without data.
	uintptr_t (*load)(const char *package, const char *function, rlx_array **in, int *inputs, rlx_array **out, int *outputs, rlx_why *why);
	// plan returns how many operations a function has, and where they are run: in
	// memory of malloc.
	int (*plan)(uintptr_t handle, rlx_placement **placements);
	int (*predict)(uintptr_t handle, const rlx_array *in, rlx_array *out, rlx_why *why);
	// state describes the state of a name in array, with data of malloc that hold its
	// values, or with write takes the values from there. It returns 0 where there is none.
	int (*state)(uintptr_t handle, const char *name, rlx_array *array, int write);
	void (*release)(uintptr_t handle);
} rlx_evaluator;

extern rlx_evaluator rlx_evaluates;

// rlx_software_older makes the system one before macOS 14.4, which has neither states
// nor plans.
void rlx_software_older(int older);
extern int rlx_older;

// rlx_software_compiled is how many packages were compiled.
long rlx_software_compiled(void);

// rlx_software_input is where the last input of the last prediction lay.
long rlx_software_input(void);

// rlx_counted is how many objects there are: models, arrays, states, plans.
extern long rlx_counted;

// rlx_software_install sets the evaluator, and the count of live objects.
void rlx_software_install(const rlx_evaluator *evaluator);
long rlx_software_alive(void);

#endif
