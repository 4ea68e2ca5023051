// A fake NVRTC: the fake driver compiles what it returns, for this processor, all kernels of a plan
// together. It supports the architectures of NVIDIA's NVRTC of its version, as listed by 12.0 to 13.5
// from its wheels.
#include "fake.h"

#include <unistd.h>

typedef struct {
	char *source;
	char *log;
	image_head head;
	char *code;
} program;

static int version(int *major, int *minor) {
	*major = *minor = 0;
	return sscanf(setting("RLX_FAKE_NVRTC", VERSION), "%d.%d", major, minor), 1000 * *major + 10 * *minor;
}
EXPORT int nvrtcVersion(int *major, int *minor) { return version(major, minor), 0; }

static const struct { int capability, first, last; } known[] = {
	{50, 0, 12090}, {52, 0, 12090}, {53, 0, 12090}, {60, 0, 12090}, {61, 0, 12090}, {62, 0, 12090}, {70, 0, 12090}, {72, 0, 12090},
	{75, 0, 99990}, {80, 0, 99990}, {86, 0, 99990}, {87, 0, 99990}, {88, 13000, 99990}, {89, 0, 99990}, {90, 0, 99990},
	{100, 12080, 99990}, {101, 12080, 12090}, {103, 12090, 99990}, {107, 13040, 99990}, {110, 13000, 99990}, {120, 12080, 99990}, {121, 12090, 99990},
};
EXPORT int nvrtcGetNumSupportedArchs(int *count) {
	int major, minor, v = version(&major, &minor);
	*count = 0;
	for (int i = 0; i < sizeof known / sizeof *known; i++) *count += known[i].first <= v && v <= known[i].last;
	return 0;
}
EXPORT int nvrtcGetSupportedArchs(int *list) {
	int major, minor, v = version(&major, &minor);
	for (int i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].first <= v && v <= known[i].last) *list++ = known[i].capability;
	return 0;
}

EXPORT int nvrtcCreateProgram(program **p, const char *source, const char *name, int n, const char **headers, const char **names) {
	*p = calloc(1, sizeof **p);
	(*p)->source = strdup(source);
	(*p)->head.magic = IMAGE_MAGIC;
	return 0;
}

// hash is FNV-1a over a text, from the hash of what comes before it.
static unsigned long long hash(const char *text, unsigned long long from) {
	for (; *text; text++) from = (from ^ (unsigned char)*text) * 1099511628211ull;
	return from;
}

// defer makes the path of a kernel's object the code, and where no equal source was compiled before, by any
// process, writes the source beside it, for the driver.
static int defer(program *p) {
	char key[64], path[512], text[600], part[600];
	snprintf(key, sizeof key, "%016llx_%zu", hash(p->source, hash(p->head.kernel, 14695981039346656037ull)), strlen(p->source));
	snprintf(path, sizeof path, "%s/%s", setting("RLX_FAKE_OBJECTS", "/nowhere"), key);
	p->code = strdup(path), p->head.bytes = strlen(path) + 1;
	snprintf(text, sizeof text, "%s.so", path);
	if (access(text, F_OK) == 0) return 0;
	snprintf(text, sizeof text, "%s.cc", path);
	snprintf(part, sizeof part, "%s.%d-%p", path, getpid(), (void *)p);
	FILE *f = fopen(part, "w");
	if (!f) return 11;
	const char *name = p->head.kernel;
	fprintf(f, "#define %s %s_%s\nnamespace in_%s {\n#line 1 \"kernel.cu\"\n%s\nRLX_KERNEL(%s, %s)\n}\n#undef %s\n", name, name, key, key, p->source, key, name, name);
	return fclose(f) || rename(part, text) ? 11 : 0;
}

// target records the target of a program: "sm_90a" is a cubin, "compute_90" PTX. An architecture
// that its version does not support is an invalid option.
static int target(program *p, const char *option) {
	int major, minor, v = version(&major, &minor);
	const char *number = strchr(option, '_');
	if (!number) return 5;
	p->head.capability = atoi(number + 1);
	p->head.ptx = strstr(option, "compute_") ? v : 0;
	for (int i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].capability == p->head.capability && known[i].first <= v && v <= known[i].last) return 0;
	return 5;
}

EXPORT int nvrtcCompileProgram(program *p, int n, const char **options) {
	int r = target(p, n > 0 ? options[0] : "");
	if (r) return p->log = strdup("nvrtc: error: invalid value for --gpu-architecture (-arch)"), r;
	int major, minor;
	if (version(&major, &minor) < 12030 && !p->head.ptx && strstr(p->source, "cudaGraphSetConditional")) // as NVIDIA's say
		return p->log = strdup("ptxas fatal   : Unresolved extern function 'cudaGraphSetConditional'"), 6;
	const char *name = strstr(p->source, "extern \"C\" __global__"), *start = name ? strstr(name, " k_") : 0;
	note("nvrtcCompileProgram %s", n > 0 ? options[0] : "");
	if (!start || strstr(p->source, setting("RLX_FAKE_REFUSE", "no such text"))) {
		p->log = strdup("kernel.cu(1): error: this is no kernel");
		return 6;
	}
	snprintf(p->head.kernel, sizeof p->head.kernel, "%.*s", (int)strcspn(start + 1, "("), start + 1);
	return setting("RLX_FAKE_CLANG", 0) ? defer(p) : 0;
}

EXPORT int nvrtcGetCUBINSize(program *p, size_t *bytes) { return *bytes = sizeof p->head + p->head.bytes, 0; }
EXPORT int nvrtcGetCUBIN(program *p, char *image) {
	memcpy(image, &p->head, sizeof p->head);
	if (p->code) memcpy(image + sizeof p->head, p->code, p->head.bytes);
	return 0;
}
EXPORT int nvrtcGetPTXSize(program *p, size_t *bytes) { return nvrtcGetCUBINSize(p, bytes); }
EXPORT int nvrtcGetPTX(program *p, char *image) { return nvrtcGetCUBIN(p, image); }
EXPORT int nvrtcGetProgramLogSize(program *p, size_t *bytes) { return *bytes = p->log ? strlen(p->log) + 1 : 0, 0; }
EXPORT int nvrtcGetProgramLog(program *p, char *log) { return strcpy(log, p->log), 0; }
EXPORT const char *nvrtcGetErrorString(int code) { return code == 6 ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR"; }
EXPORT int nvrtcDestroyProgram(program **p) {
	free((*p)->source);
	free((*p)->log);
	free((*p)->code);
	free(*p);
	return 0;
}
