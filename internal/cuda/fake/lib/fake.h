// What the fake libraries share: the environment steers them, so that a
// test does. See fake.go.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static const char *setting(const char *name, const char *otherwise) {
	const char *value = getenv(name);
	return value && *value ? value : otherwise;
}

// note writes a line to the log of calls.
__attribute__((format(printf, 1, 2))) static void note(const char *format, ...) {
	const char *path = setting("RLX_FAKE_LOG", 0);
	FILE *log = path ? fopen(path, "a") : 0;
	if (!log) return;
	__builtin_va_list args;
	__builtin_va_start(args, format);
	vfprintf(log, format, args);
	__builtin_va_end(args);
	fputc('\n', log);
	fclose(log);
}

// image is the fake compiler's output, which the fake driver loads: a head, then the path of the kernel's
// source and library without their extensions, or nothing.
#define IMAGE_MAGIC 0x58494d4147454b46ull
typedef struct {
	unsigned long long magic, bytes;
	int capability; // that it was compiled for
	int ptx;        // the version of CUDA that PTX is of, 12040, 0 for a cubin
	char kernel[256];
} image_head;
