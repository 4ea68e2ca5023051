// A fake NVRTC: it compiles a kernel for this processor, with clang. It supports the architectures
// of NVIDIA's NVRTC of its version, as listed by 12.0 to 13.5 from its wheels.
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

static char *slurp(const char *path, unsigned long long *bytes) {
	FILE *f = fopen(path, "rb");
	if (!f) return 0;
	fseek(f, 0, SEEK_END);
	*bytes = ftell(f);
	rewind(f);
	char *data = calloc(1, *bytes + 1);
	if (fread(data, 1, *bytes, f) != *bytes) *bytes = 0;
	fclose(f);
	return data;
}

// compile runs clang on the prelude, the source and a call of the kernel, and keeps its output.
static int compile(program *p, const char *clang, const char *keep) {
	char dir[] = "/tmp/rlx-fake-XXXXXX", path[3][64], command[1024];
	if (!mkdtemp(dir)) return 11;
	const char *names[] = {"kernel.cc", "kernel.so", "log"};
	for (int i = 0; i < 3; i++) snprintf(path[i], sizeof path[i], "%s/%s", dir, names[i]);
	FILE *f = fopen(path[0], "w");
	fprintf(f, "#include \"%s\"\n#line 1 \"kernel.cu\"\n%s\nRLX_KERNEL(%s)\n", getenv("RLX_FAKE_PRELUDE"), p->source, p->head.kernel);
	fclose(f);
	snprintf(command, sizeof command, "%s -x c++ -std=c++17 -O0 -w -shared -fPIC -nostdlib -ffp-contract=fast -o %s %s -lm -lgcc 2>%s", clang, path[1], path[0], path[2]);
	int failed = system(command);
	unsigned long long bytes;
	p->log = slurp(path[2], &bytes);
	if (!failed) {
		p->code = slurp(path[1], &p->head.bytes);
		rename(path[1], keep);
	}
	for (int i = 0; i < 3; i++) unlink(path[i]);
	rmdir(dir);
	return failed ? 6 : 0;
}

// hash is FNV-1a over a text, from the hash of what comes before it.
static unsigned long long hash(const char *text, unsigned long long from) {
	for (; *text; text++) from = (from ^ (unsigned char)*text) * 1099511628211ull;
	return from;
}

// build takes the code of an equal source that was compiled before, by any process, or compiles it.
static int build(program *p, const char *clang) {
	char kept[512];
	snprintf(kept, sizeof kept, "%s/%016llx-%zu.so", setting("RLX_FAKE_OBJECTS", "/nowhere"),
		hash(p->source, hash(p->head.kernel, 14695981039346656037ull)), strlen(p->source));
	p->code = slurp(kept, &p->head.bytes);
	return p->code ? 0 : compile(p, clang, kept);
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
	const char *clang = setting("RLX_FAKE_CLANG", 0);
	return clang ? build(p, clang) : 0;
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
