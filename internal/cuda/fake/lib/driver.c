// A fake CUDA driver: device memory is host memory, streams run at once, kernels are code for this
// processor.
#include "fake.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

typedef uint64_t devptr;

static int sticky;       // the code that every call in a lost context returns
static int seen; // how often the call that is to fail was made

// call notes a call and returns the code it is to fail with: that of
// RLX_FAKE_FAIL, "cuMemAlloc 2 3", which is the third cuMemAlloc.
static int call(const char *name) {
	char which[64] = "";
	int code = 0, nth = 1;
	note("%s", name);
	if (sticky) return sticky;
	sscanf(setting("RLX_FAKE_FAIL", ""), "%63s %d %d", which, &code, &nth);
	if (strcmp(which, name) != 0) return 0;
	if (++seen != nth) return 0;
	if (code >= 700) sticky = code;
	return code;
}
#define CALL(name)               \
	do {                         \
		int code = call(name);   \
		if (code) return code;   \
	} while (0)

// Memory: blocks in a list, so that a copy out of bounds is found.
typedef struct block {
	char *at;
	size_t bytes;
	int host;
	struct block *next;
} block;
static block *blocks;
static size_t used;

static size_t memory(void) { return strtoull(setting("RLX_FAKE_MEMORY", "1073741824"), 0, 10); }

static void *allocate(size_t bytes, int host) {
	block *b = malloc(sizeof *b);
	*b = (block){aligned_alloc(256, (bytes + 255) / 256 * 256), bytes, host, blocks};
	memset(b->at, 0xa5, bytes); // as a device, full of anything
	blocks = b;
	return b->at;
}

static int release(void *p, int host) {
	for (block **b = &blocks; *b; b = &(*b)->next)
		if ((*b)->at == p && (*b)->host == host) {
			block *gone = *b;
			if (!host) used -= gone->bytes;
			*b = gone->next;
			free(gone->at);
			free(gone);
			return 0;
		}
	return 1;
}

static int outside(devptr p, size_t bytes) {
	for (block *b = blocks; b; b = b->next)
		if (!b->host && (char *)p >= b->at && (char *)p + bytes <= b->at + b->bytes) return 0;
	return 1;
}

// Memory that is mapped by hand: the addresses around it are unmapped, as a device's.
EXPORT int cuMemGetAllocationGranularity(size_t *page, const void *what, int which) { return *page = 1 << 16, 0; }
EXPORT int cuMemAddressReserve(devptr *p, size_t bytes, size_t alignment, devptr where, unsigned long long flags) {
	CALL("cuMemAddressReserve");
	*p = (devptr)mmap(0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return 0;
}
EXPORT int cuMemAddressFree(devptr p, size_t bytes) { CALL("cuMemAddressFree"); return munmap((void *)p, bytes) != 0; }
EXPORT int cuMemCreate(unsigned long long *memory, size_t bytes, const void *what, unsigned long long flags) {
	CALL("cuMemCreate");
	return *memory = bytes, 0;
}
EXPORT int cuMemRelease(unsigned long long memory) { return 0; }
EXPORT int cuMemMap(devptr p, size_t bytes, size_t offset, unsigned long long memory, unsigned long long flags) { return bytes != memory; }
EXPORT int cuMemSetAccess(devptr p, size_t bytes, const void *access, size_t count) {
	if (mprotect((void *)p, bytes, PROT_READ | PROT_WRITE)) return 1;
	block *b = malloc(sizeof *b);
	*b = (block){memset((void *)p, 0xa5, bytes), bytes, 0, blocks};
	return blocks = b, 0;
}
EXPORT int cuMemUnmap(devptr p, size_t bytes) {
	for (block **b = &blocks; *b; b = &(*b)->next)
		if ((*b)->at == (char *)p) {
			block *gone = *b;
			*b = gone->next;
			free(gone);
			return mprotect((void *)p, bytes, PROT_NONE) != 0;
		}
	return 1;
}

// Functions and graphs.
typedef struct {
	void *library;
	char kernel[256];
	int (*pack)(void **args, char *cells); // null for kernels that are noted only
	void (*run)(char *cells, const unsigned *grid, const unsigned *block);
} module;

typedef struct node {
	module *kernel; // null for a fill, a copy or a call
	void (*call)(void *);
	char cells[8 * 128];
	unsigned grid[3], block[3];
	devptr to, from;
	size_t bytes;
	unsigned value; // of a fill
	struct graph *body; // of a condition
	unsigned *condition;
	int loop;
	struct node *next;
} node;
typedef struct graph { node *first, **last; } graph;
typedef struct { graph *capture; } stream;
typedef struct { int looks; long at; } event;
static long recorded, happened; // points in time: events happen in order

static int perform(node *n);

static void perform_all(graph *g) {
	for (node *n = g->first; n; n = n->next) perform(n);
}

static int perform(node *n) {
	if (n->body) {
		note("condition %d %u", n->loop, *n->condition);
		if (!n->loop && *n->condition) perform_all(n->body);
		while (n->loop && *n->condition) perform_all(n->body);
	} else if (n->kernel) {
		note("run %s %u %u %u", n->kernel->kernel, n->grid[0], n->grid[1], n->grid[2]);
		if (n->kernel->run) n->kernel->run(n->cells, n->grid, n->block);
	} else if (n->call) {
		n->call(n->cells);
	} else if (n->from) {
		memcpy((void *)n->to, (void *)n->from, n->bytes);
	} else {
		note("clear %zu", n->bytes);
		for (size_t i = 0; i < n->bytes / 4; i++) ((unsigned *)n->to)[i] = n->value;
	}
	return 0;
}

// ask does a piece of work, or adds it to the graph that is captured.
static int ask(stream *s, node *n) {
	if (!s->capture) return perform(n);
	node *own = malloc(sizeof *own);
	*own = *n;
	own->next = 0;
	*s->capture->last = own;
	s->capture->last = &own->next;
	return 0;
}

// rlx_fake_clear is how a fake library has memory cleared.
EXPORT int rlx_fake_clear(stream *s, void *p, size_t bytes) { return ask(s, &(node){.to = (devptr)p, .bytes = bytes}); }

// rlx_fake_call enqueues work of a fake library on a stream.
EXPORT int rlx_fake_call(stream *s, void (*f)(void *), const void *data, size_t bytes) {
	node n = {.call = f};
	memcpy(n.cells, data, bytes);
	return ask(s, &n);
}

EXPORT int cuInit(unsigned flags) { CALL("cuInit"); return 0; }
EXPORT int cuDriverGetVersion(int *v) { return *v = atoi(setting("RLX_FAKE_VERSION", "13000")), 0; }
EXPORT int cuDeviceGetCount(int *n) { return *n = atoi(setting("RLX_FAKE_DEVICES", "1")), 0; }
EXPORT int cuDeviceGet(int *d, int i) { CALL("cuDeviceGet"); return *d = i, 0; }
EXPORT int cuDeviceGetName(char *name, int n, int d) { return snprintf(name, n, "Fake GPU %d", d), 0; }
EXPORT int cuDeviceGetAttribute(int *v, int which, int d) {
	const int capability = atoi(setting("RLX_FAKE_CAPABILITY", "90"));
	*v = which == 75 ? capability / 10 : which == 76 ? capability % 10 : which == 16 ? 2 : which >= 36 && which <= 38 ? 0 : which == 97 ? (capability == 89 ? 99 : 227) << 10 : 1000000;
	return 0;
}
EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int d) { return *bytes = memory(), 0; }
EXPORT int cuDevicePrimaryCtxRetain(void **context, int d) { CALL("cuDevicePrimaryCtxRetain"); return *context = &blocks, 0; }
EXPORT int cuCtxSetCurrent(void *context) { return 0; }
EXPORT int cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
	CALL("cuMemGetInfo");
	return *total = memory(), *free_bytes = memory() - used, 0;
}
EXPORT int cuMemAlloc_v2(devptr *p, size_t bytes) {
	CALL("cuMemAlloc");
	if (used + bytes > memory()) return 2;
	used += bytes;
	return *p = (devptr)allocate(bytes, 0), 0;
}
EXPORT int cuMemFree_v2(devptr p) { CALL("cuMemFree"); return release((void *)p, 0); }
EXPORT int cuMemHostAlloc(void **p, size_t bytes, unsigned flags) { CALL("cuMemHostAlloc"); return *p = allocate(bytes, 1), 0; }
EXPORT int cuMemFreeHost(void *p) { CALL("cuMemFreeHost"); return release(p, 1); }
EXPORT int cuMemcpyHtoDAsync_v2(devptr to, const void *from, size_t bytes, stream *s) {
	CALL("cuMemcpyHtoDAsync");
	if (outside(to, bytes) || s->capture) return 1;
	return memcpy((void *)to, from, bytes), 0;
}
EXPORT int cuMemcpyDtoHAsync_v2(void *to, devptr from, size_t bytes, stream *s) {
	CALL("cuMemcpyDtoHAsync");
	if (outside(from, bytes) || s->capture) return 1;
	return memcpy(to, (void *)from, bytes), 0;
}
EXPORT int cuMemcpyDtoDAsync_v2(devptr to, devptr from, size_t bytes, stream *s) {
	CALL("cuMemcpyDtoDAsync");
	if (outside(to, bytes) || outside(from, bytes)) return 1;
	return ask(s, &(node){.to = to, .from = from, .bytes = bytes});
}
EXPORT int cuMemsetD32Async(devptr p, unsigned value, size_t words, stream *s) {
	CALL("cuMemsetD32Async");
	if (outside(p, 4 * words)) return 1;
	return ask(s, &(node){.to = p, .bytes = 4 * words, .value = value});
}
EXPORT int cuStreamCreate(stream **s, unsigned flags) { CALL("cuStreamCreate"); return *s = calloc(1, sizeof **s), 0; }
EXPORT int cuStreamDestroy_v2(stream *s) { CALL("cuStreamDestroy"); return free(s), 0; }
EXPORT int cuStreamSynchronize(stream *s) { CALL("cuStreamSynchronize"); return 0; }
static graph *new_graph(void) {
	graph *g = calloc(1, sizeof *g);
	g->last = &g->first;
	return g;
}
EXPORT int cuStreamBeginCapture_v2(stream *s, int mode) {
	CALL("cuStreamBeginCapture");
	return s->capture = new_graph(), 0;
}
// Graphs that branch. A condition is its value; nodes wait for those before them.
EXPORT int cuStreamGetCaptureInfo_v2(stream *s, int *status, unsigned long long *id, graph **g, void ***before, size_t *count) {
	if (count) *count = 0;
	if (g) *g = s->capture;
	return s->capture ? 0 : 1;
}
EXPORT int cuGraphConditionalHandleCreate(unsigned long long *condition, graph *g, void *context, unsigned value, unsigned flags) {
	CALL("cuGraphConditionalHandleCreate");
	return *condition = (unsigned long long)calloc(1, sizeof(unsigned)), 0;
}
EXPORT int cuGraphAddNode(node **out, graph *g, node **before, size_t count, void *params) {
	CALL("cuGraphAddNode");
	struct { int type, reserved[3]; unsigned *condition; int loop; unsigned count; graph **body; void *context; } *p = params;
	if (p->type != 13 || p->count != 1) return 1;
	node *n = calloc(1, sizeof *n);
	n->body = new_graph(), n->condition = p->condition, n->loop = p->loop;
	p->body = &n->body;
	*g->last = n;
	g->last = &n->next;
	return *out = n, 0;
}
EXPORT int cuStreamUpdateCaptureDependencies(stream *s, node **nodes, size_t count, unsigned flags) { return 0; }
EXPORT int cuStreamBeginCaptureToGraph(stream *s, graph *g, node **before, void *edges, size_t count, int mode) {
	CALL("cuStreamBeginCaptureToGraph");
	return s->capture = g, 0;
}
EXPORT int cuStreamEndCapture(stream *s, graph **g) {
	CALL("cuStreamEndCapture");
	*g = s->capture;
	s->capture = 0;
	return 0;
}
// Graphs that are changed: nodes wait for the one before them.
static int fills(const node *n) { return !n->kernel && !n->call && !n->body && !n->from; }
static graph *captured;
EXPORT int cuGraphGetNodes(graph *g, node **nodes, size_t *count) {
	CALL("cuGraphGetNodes");
	size_t n = 0;
	for (node *i = g->first; i; i = i->next, n++)
		if (nodes) nodes[n] = i;
	captured = g;
	return *count = n, 0;
}
EXPORT int cuGraphNodeGetType(node *n, int *type) { return *type = fills(n) ? 2 : n->body ? 13 : n->from ? 1 : 0, 0; }
EXPORT int cuGraphMemsetNodeGetParams(node *n, void *params) {
	struct { devptr to; size_t pitch; unsigned value, element; size_t width, height; } *p = params;
	if (!fills(n)) return 1;
	p->to = n->to, p->pitch = 0, p->value = n->value, p->element = 4, p->width = n->bytes / 4, p->height = 1;
	return 0;
}
static node *before(const node *n) {
	node *last = 0;
	for (node *i = captured->first; i && i != n; i = i->next) last = i;
	return last;
}
EXPORT int cuGraphNodeGetDependencies(node *n, node **list, size_t *count) {
	node *b = before(n);
	if (list && !b) return 1; // as NVIDIA's does
	if (list) *list = b;
	return *count = b != 0, 0;
}
EXPORT int cuGraphNodeGetDependentNodes(node *n, node **list, size_t *count) {
	if (list && !n->next) return 1;
	if (list) *list = n->next;
	return *count = n->next != 0, 0;
}
EXPORT int cuGraphAddKernelNode_v2(node **out, graph *g, node **after, size_t count, const void *params) {
	CALL("cuGraphAddKernelNode");
	const struct { module *f; unsigned grid[3], block[3], shared; void **arguments; } *p = params;
	node *n = calloc(1, sizeof *n), **at = count ? &after[0]->next : &g->first;
	n->kernel = p->f;
	memcpy(n->grid, p->grid, sizeof n->grid), memcpy(n->block, p->block, sizeof n->block);
	if (p->f->pack && p->f->pack(p->arguments, n->cells) > 128) return 1;
	n->next = *at, *at = n;
	if (!n->next) g->last = &n->next;
	return *out = n, 0;
}
EXPORT int cuGraphAddDependencies(graph *g, node **from, node **to, size_t count) { return 0; }
EXPORT int cuGraphDestroyNode(node *n) {
	node *b = before(n);
	*(b ? &b->next : &captured->first) = n->next;
	if (!n->next) captured->last = b ? &b->next : &captured->first;
	return free(n), 0;
}

EXPORT int cuGraphInstantiateWithFlags(graph **exec, graph *g, unsigned long long flags) { CALL("cuGraphInstantiate"); return *exec = g, 0; }
EXPORT int cuGraphLaunch(graph *g, stream *s) {
	CALL("cuGraphLaunch");
	perform_all(g);
	return 0;
}
EXPORT int cuGraphDestroy(graph *g) { return 0; } // the executable one stays valid
static void destroy(graph *g) {
	for (node *n = g->first, *next; n; n = next) {
		next = n->next;
		if (n->body) destroy(n->body), free(n->condition);
		free(n);
	}
	free(g);
}
EXPORT int cuGraphExecDestroy(graph *g) {
	CALL("cuGraphExecDestroy");
	return destroy(g), 0;
}
EXPORT int cuEventCreate(event **e, unsigned flags) { CALL("cuEventCreate"); return *e = calloc(1, sizeof **e), 0; }
EXPORT int cuEventRecord(event *e, stream *s) {
	CALL("cuEventRecord");
	e->at = ++recorded;
	return e->looks = atoi(setting("RLX_FAKE_DELAY", "0")), 0;
}
EXPORT int cuStreamWaitEvent(stream *s, event *e, unsigned flags) { CALL("cuStreamWaitEvent"); return 0; }
EXPORT int cuEventQuery(event *e) {
	CALL("cuEventQuery");
	if (e->at > happened && e->looks-- > 0) return 600;
	if (e->at > happened) happened = e->at;
	return 0;
}
EXPORT int cuEventElapsedTime(float *ms, event *from, event *to) { // one for each point in time
	CALL("cuEventElapsedTime");
	return *ms = to->at - from->at, 0;
}
EXPORT int cuEventDestroy_v2(event *e) { CALL("cuEventDestroy"); return free(e), 0; }

// compile compiles kernels of a folder, by their keys, to one library, which each has a link to. The
// process makes the links last, so that others find whole libraries.
static int compile(const char *folder, char **keys, int n) {
	char base[512], name[600], command[2048];
	snprintf(base, sizeof base, "%s/batch-%d", folder, getpid());
	snprintf(name, sizeof name, "%s.cc", base);
	FILE *f = fopen(name, "w");
	if (!f) return 999;
	for (int i = 0; i < n; i++) fprintf(f, "#include \"%s/%s.cc\"\n", folder, keys[i]);
	fclose(f);
	snprintf(command, sizeof command, "%s -x c++ -std=c++17 -O0 -w -shared -fPIC -nostdlib -ffp-contract=fast -include %s -o %s.so %s -lm -lgcc",
		setting("RLX_FAKE_CLANG", 0), setting("RLX_FAKE_PRELUDE", ""), base, name);
	const int failed = system(command);
	unlink(name);
	snprintf(name, sizeof name, "%s.so", base);
	for (int i = 0; i < n && !failed; i++) {
		snprintf(command, sizeof command, "%s/%s.so", folder, keys[i]);
		if (link(name, command)) return 999;
		strcpy(strrchr(command, '.'), ".cc");
		unlink(command);
	}
	unlink(name);
	return failed ? 200 : 0;
}

// compile_pending compiles all kernels of a folder that NVRTC has left there, which takes a fifth of the time
// of one after another. Where clang refuses one, all but it are compiled.
static void compile_pending(const char *folder) {
	char pattern[512];
	snprintf(pattern, sizeof pattern, "%s/[0-9a-f]*.cc", folder);
	glob_t found;
	if (glob(pattern, 0, 0, &found)) return;
	char **keys = found.gl_pathv;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		memmove(keys[i], strrchr(keys[i], '/') + 1, strlen(strrchr(keys[i], '/')));
		*strrchr(keys[i], '.') = 0;
	}
	if (compile(folder, keys, found.gl_pathc))
		for (size_t i = 0; i < found.gl_pathc; i++) {
			if (!compile(folder, &keys[i], 1)) continue;
			snprintf(pattern, sizeof pattern, "%s/%s.cc", folder, keys[i]);
			unlink(pattern);
		}
	globfree(&found);
}

// object returns a file of the library with a kernel, at a path without extension, or -1.
static int object(const char *path) {
	char name[600], folder[512];
	snprintf(name, sizeof name, "%s.so", path);
	int file = open(name, O_RDONLY | O_CLOEXEC);
	if (file >= 0) return file;
	snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
	const int lock = open(folder, O_RDONLY | O_CLOEXEC);
	if (lock < 0 || flock(lock, LOCK_EX)) return -1;
	if ((file = open(name, O_RDONLY | O_CLOEXEC)) < 0) {
		compile_pending(folder);
		file = open(name, O_RDONLY | O_CLOEXEC);
	}
	return close(lock), file;
}

// open_code opens a copy of the library with a kernel, since each module has variables of its own.
static int open_code(module *m, const char *path) {
	char copy[] = "/tmp/rlx-fake-XXXXXX", name[128];
	struct stat is;
	const int from = object(path), to = mkstemp(copy);
	if (from < 0 || to < 0 || fstat(from, &is) || sendfile(to, from, 0, is.st_size) != is.st_size) return 200;
	close(from), close(to);
	m->library = dlopen(copy, RTLD_NOW | RTLD_LOCAL);
	unlink(copy);
	if (!m->library) return note("dlopen: %s", dlerror()), 200;
	snprintf(name, sizeof name, "rlx_pack_%s", strrchr(path, '/') + 1);
	*(void **)&m->pack = dlsym(m->library, name);
	snprintf(name, sizeof name, "rlx_run_%s", strrchr(path, '/') + 1);
	*(void **)&m->run = dlsym(m->library, name);
	return m->pack && m->run ? 0 : 200;
}
// A cubin is for its own compute capability, PTX for later ones too, if its version is known.
EXPORT int cuModuleLoadDataEx(module **m, const image_head *head, unsigned n, int *options, void **values) {
	CALL("cuModuleLoadDataEx");
	int capability = atoi(setting("RLX_FAKE_CAPABILITY", "90")), version;
	cuDriverGetVersion(&version);
	if (head->magic != IMAGE_MAGIC) return 200;
	if (head->ptx > version) return 222;
	if (head->ptx && *setting("RLX_FAKE_NO_PTX", "")) return 218;
	if (head->capability > capability || !head->ptx && head->capability != capability) return 209;
	*m = calloc(1, sizeof **m);
	strcpy((*m)->kernel, head->kernel);
	return head->bytes ? open_code(*m, (const char *)(head + 1)) : 0;
}
// A tensor map is noted, and begins with its address.
EXPORT int cuTensorMapEncodeTiled(void *map, int type, unsigned axes, devptr p, const uint64_t *dims, const uint64_t *strides, const unsigned *size,
                                  const unsigned *each, int interleave, int swizzle, int promotion, int fill) {
	CALL("cuTensorMapEncodeTiled");
	if ((uintptr_t)map % 64 || p % 16 || axes < 1 || axes > 5 || outside(p, 16)) return 1;
	char text[256] = "";
	for (unsigned i = 0, at = 0; i < axes; i++) at += snprintf(text + at, sizeof text - at, " %llu+%llu/%u", (unsigned long long)dims[i], i ? (unsigned long long)strides[i - 1] : 0ull, size[i]);
	note("map of type %d:%s", type, text);
	memset(map, 0, 128);
	return memcpy(map, &p, sizeof p), 0;
}
EXPORT int cuTensorMapEncodeIm2col(void *map, int type, unsigned axes, devptr p, const uint64_t *dims, const uint64_t *strides, const int *lower,
                                   const int *upper, unsigned channels, unsigned pixels, const unsigned *each, int interleave, int swizzle, int promotion,
                                   int fill) {
	CALL("cuTensorMapEncodeIm2col");
	if ((uintptr_t)map % 64 || p % 16 || axes < 3 || axes > 5 || outside(p, 16)) return 1;
	char text[256] = "";
	for (unsigned i = 0, at = 0; i < axes; i++) {
		at += snprintf(text + at, sizeof text - at, " %llu+%llu", (unsigned long long)dims[i], i ? (unsigned long long)strides[i - 1] : 0ull);
		if (i && i + 1 < axes) at += snprintf(text + at, sizeof text - at, "[%d,%d]/%u", lower[i - 1], upper[i - 1], each[i]);
	}
	note("pixels of type %d, %u of %u channels:%s", type, pixels, channels, text);
	memset(map, 0, 128);
	return memcpy(map, &p, sizeof p), 0;
}
EXPORT int cuFuncSetAttribute(module *f, int which, int value) { CALL("cuFuncSetAttribute"); return 0; }
EXPORT int cuModuleGetFunction(module **f, module *m, const char *name) {
	CALL("cuModuleGetFunction");
	return *f = m, strcmp(m->kernel, name) ? 500 : 0;
}
EXPORT int cuModuleUnload(module *m) {
	CALL("cuModuleUnload");
	if (m->library) dlclose(m->library);
	return free(m), 0;
}
EXPORT int cuLaunchKernel(module *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                          stream *s, void **args, void **extra) {
	CALL("cuLaunchKernel");
	node n = {.kernel = f, .grid = {gx, gy, gz}, .block = {bx, by, bz}};
	if (bx * by * bz > 1024 || gy > 65535 || gz > 65535) return 1;
	if (f->pack && f->pack(args, n.cells) > 128) return 1;
	return ask(s, &n);
}
// CUlaunchConfig and CUlaunchAttribute, see cuda.h.
typedef struct {
	int kind, pad, value[16];
} attribute;
typedef struct {
	unsigned grid[3], block[3], shared;
	stream *stream;
	attribute *attributes;
	unsigned count;
} config;
EXPORT int cuLaunchKernelEx(const config *c, module *f, void **args, void **extra) {
	CALL("cuLaunchKernelEx");
	if (c->count != 1 || c->attributes->kind != 6 || c->attributes->value[0] != 1) return 1;
	const unsigned *g = c->grid, *b = c->block;
	return cuLaunchKernel(f, g[0], g[1], g[2], b[0], b[1], b[2], c->shared, c->stream, args, extra);
}
EXPORT int cuGetErrorName(int code, const char **name) {
	switch (code) {
	case 1: *name = "CUDA_ERROR_INVALID_VALUE"; break;
	case 2: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
	case 100: *name = "CUDA_ERROR_NO_DEVICE"; break;
	case 700: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
	default: return 1;
	}
	return 0;
}
EXPORT int cuGetErrorString(int code, const char **text) {
	switch (code) {
	case 2: *text = "out of memory"; break;
	case 700: *text = "an illegal memory access was encountered"; break;
	default: return 1;
	}
	return 0;
}
