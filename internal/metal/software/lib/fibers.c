// Runs kernels on this processor: the threads of a threadgroup are fibers that yield where
// they wait for others. It reports accesses out of bounds, undefined behaviour, and
// divergent barriers.
#include "software.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { stack_bytes = 64 << 10 };
enum wait { ready, at_barrier, at_exchange, over };

typedef struct {
	jmp_buf at;
	int begun;
	enum wait wait;
	int line; // of the barrier
	sw_thread self;
	char value[16];
} fiber;

static fiber *fibers;
static char *stacks;
static jmp_buf home;
static fiber *now;
static unsigned count;
static sw_kernel body;
static const sw_argument *arguments;
static char *complaint;
static size_t complaint_bytes;

static void complain(const char *format, ...) {
	if (*complaint) return; // only the first one is reported
	va_list list;
	va_start(list, format);
	vsnprintf(complaint, complaint_bytes, format, list);
	va_end(list);
}

// What kernels call.

void sw_outside(long at, size_t count) { complain("element %ld of a buffer of %zu", at, count); }

static void leave(enum wait why) {
	now->wait = why;
	if (!_setjmp(now->at)) _longjmp(home, 1);
}

void sw_barrier(int line) {
	now->line = line;
	leave(at_barrier);
}

// sw_exchange publishes a value and returns those of the SIMD-group's threads, NULL for
// threads that there are not.
void sw_exchange(const void *value, size_t bytes, const void *lanes[sw_simd]) {
	memcpy(now->value, value, bytes);
	leave(at_exchange);
	unsigned first = now->self.index / sw_simd * sw_simd;
	for (unsigned i = 0; i < sw_simd; i++) lanes[i] = first + i < count ? fibers[first + i].value : NULL;
}

// sw_release waits until all lanes have read what was published.
void sw_release(void) { leave(at_exchange); }

unsigned sw_lane(void) { return now->self.lane; }

// sw_agree waits for the SIMD-group's threads, which must all mean the same place of memory at
// the same line of the source. It reports whether the caller is the first of them, which
// compares what the others published with its own.
int sw_agree(const void *at, long row, int line) {
	struct {
		const void *at;
		int row, line;
	} own = {at, (int)row, line};
	memcpy(now->value, &own, sizeof own);
	leave(at_exchange);
	unsigned first = now->self.index;
	if (now->self.lane == 0)
		for (unsigned i = 0; i < sw_simd; i++)
			if (first + i >= count || memcmp(fibers[first + i].value, &own, sizeof own)) {
				complain("line %d: the threads of a SIMD-group do not mean one matrix", line);
				break;
			}
	sw_release();
	return now->self.lane == 0;
}

// The function that clang calls where a check of -fsanitize fails; data begins with the
// place in the source.
typedef struct {
	const char *file;
	uint32_t line, column;
} place;
#define HANDLER(name, what, ...) \
	void __ubsan_handle_##name(place *at, ##__VA_ARGS__) { complain("%s:%u: " what, at->file, at->line); }
HANDLER(out_of_bounds, "an index outside an array", void *a)
HANDLER(add_overflow, "a sum overflows", void *a, void *b)
HANDLER(sub_overflow, "a difference overflows", void *a, void *b)
HANDLER(mul_overflow, "a product overflows", void *a, void *b)
HANDLER(negate_overflow, "a negation overflows", void *a)
HANDLER(shift_out_of_bounds, "a shift by too much", void *a, void *b)
HANDLER(float_cast_overflow, "a float that the integer type does not have", void *a)

// A division by zero would end the process, so the thread ends here.
void __ubsan_handle_divrem_overflow(place *at, void *a, void *b) {
	complain("%s:%u: a division by zero, or one that overflows", at->file, at->line);
	if (now) now->wait = over, now->begun = 0;
	_longjmp(home, 1);
}

// enter runs a thread of one threadgroup after another.
static void enter(void) {
	for (;;) {
		body(arguments, &now->self);
		leave(over);
	}
}

static void resume(fiber *f) {
	now = f;
	f->wait = ready;
	if (_setjmp(home)) return;
	if (f->begun) _longjmp(f->at, 1);
	f->begun = 1;
	static ucontext_t start;
	getcontext(&start);
	start.uc_stack.ss_sp = stacks + (size_t)(f - fibers) * stack_bytes;
	start.uc_stack.ss_size = stack_bytes;
	makecontext(&start, enter, 0);
	setcontext(&start);
}

// release resumes the fibers from first to last, if all of them wait.
static int release(unsigned first, unsigned last, enum wait why) {
	for (unsigned i = first; i < last; i++)
		if (fibers[i].wait != why || fibers[i].line != fibers[first].line) return 0;
	for (unsigned i = first; i < last; i++) fibers[i].wait = ready;
	return 1;
}

static unsigned waiting(enum wait why) {
	unsigned n = 0;
	for (unsigned i = 0; i < count; i++) n += fibers[i].wait == why;
	return n;
}

// turn runs every fiber that may; it reports whether there is more to do.
static int turn(void) {
	for (unsigned i = 0; i < count; i++)
		if (fibers[i].wait == ready) resume(&fibers[i]);
	if (waiting(over) == count) return 0;
	int go = release(0, count, at_barrier);
	for (unsigned first = 0; first < count; first += sw_simd)
		go |= release(first, first + sw_simd < count ? first + sw_simd : count, at_exchange);
	if (go) return 1;
	complain("threads part: %u of %u are at a barrier, %u at a SIMD-group function, %u are done", waiting(at_barrier), count, waiting(at_exchange), waiting(over));
	return 0;
}

static void place_thread(sw_thread *t, unsigned i, const unsigned group[3], const unsigned threads[3]) {
	*t = (sw_thread){.local = {i % threads[0], i / threads[0] % threads[1], i / threads[0] / threads[1]}, .index = i, .lane = i % sw_simd};
	memcpy(t->group, group, sizeof t->group);
}

// run_alone runs the threads of a kernel that does not wait for others.
static void run_alone(const unsigned group[3], const unsigned threads[3]) {
	now = NULL;
	for (volatile unsigned i = 0; i < count; i++) {
		sw_thread t;
		place_thread(&t, i, group, threads);
		if (!_setjmp(home)) body(arguments, &t);
	}
}

static void run_group(int synchronises, const unsigned group[3], const unsigned threads[3]) {
	if (!synchronises) {
		run_alone(group, threads);
		return;
	}
	for (unsigned i = 0; i < count; i++) {
		fiber *f = &fibers[i];
		place_thread(&f->self, i, group, threads);
		if (f->wait != over) f->begun = 0; // it waits for threads that did not come
		f->wait = ready, f->line = 0;
	}
	while (turn()) {
	}
}

int sw_run(sw_kernel kernel, int synchronises, const sw_argument *table, const unsigned groups[3], const unsigned threads[3], char *text, size_t n) {
	if (!fibers) {
		fibers = calloc(sw_threads_max, sizeof *fibers);
		stacks = malloc((size_t)sw_threads_max * stack_bytes);
	}
	body = kernel, arguments = table, complaint = text, complaint_bytes = n, count = threads[0] * threads[1] * threads[2];
	*text = 0;
	unsigned group[3];
	for (group[2] = 0; group[2] < groups[2] && !*text; group[2]++)
		for (group[1] = 0; group[1] < groups[1] && !*text; group[1]++)
			for (group[0] = 0; group[0] < groups[0] && !*text; group[0]++) run_group(synchronises, group, threads);
	return *text != 0;
}
