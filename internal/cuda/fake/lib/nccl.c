// A fake NCCL: ranks are processes that share a file, which the unique id names. It is stricter than NVIDIA's: ranks that
// make different calls fail instead of hanging, a call whose kind was not made before cannot be captured, and a
// communicator is of no use after an abort. RLX_FAKE_NCCL is the code of an asynchronous error after the first call.
#include "fake.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ok = 0, cuda_error = 1, system_error = 2, invalid_argument = 4, invalid_usage = 5, remote_error = 6 };
enum { most_ranks = 8, slot_bytes = 1 << 20, magic = 0x6e63636c };
enum { all_reduce, all_gather, reduce_scatter, broadcast, point_to_point, kinds };

int rlx_fake_call(void *stream, void (*f)(void *), const void *data, size_t bytes);
int cuStreamGetCaptureInfo_v2(void *s, int *status, unsigned long long *id, void **g, void ***before, size_t *count);

// The call of a rank: all ranks must make the same call for a collective of one number.
typedef struct { int kind, type, op, root; uint64_t count; } claim;
typedef struct {
	atomic_int joined, failed;
	int size;
	struct { atomic_ulong arrived, left; claim what; char data[slot_bytes]; } ranks[most_ranks];
	struct { atomic_int full; uint64_t bytes; char data[slot_bytes]; } mail[most_ranks][most_ranks]; // from, to
} shared;
typedef struct {
	int magic, rank, size, code, made[kinds];
	unsigned long number;
	atomic_int aborted;
	shared *with;
} comm;

static __thread char last[256];
static int fail(int code, const char *why) { return note("nccl: %s", why), snprintf(last, sizeof last, "%s", why), code; }

EXPORT int ncclGetVersion(int *v) { return *v = 22705, ok; }
EXPORT const char *ncclGetErrorString(int code) {
	const char *text[] = {"no error", "unhandled cuda error", "unhandled system error", "internal error", "invalid argument", "invalid usage", "remote process exited or there was a network error"};
	return code >= 0 && code < 7 ? text[code] : "unknown result code";
}
EXPORT const char *ncclGetLastError(comm *c) { return last; }
EXPORT int ncclGetUniqueId(char *id) {
	note("ncclGetUniqueId");
	memset(id, 0, 128);
	snprintf(id, 128, "%s/rlx-fake-nccl-XXXXXX", setting("TMPDIR", "/tmp"));
	int file = mkstemp(id);
	if (file < 0 || ftruncate(file, sizeof(shared))) return fail(system_error, "no file to share");
	return close(file), ok;
}

typedef struct { char bytes[128]; } unique_id;
typedef struct { size_t size; unsigned magic, version; int blocking; } config;

EXPORT int ncclCommInitRankConfig(comm **out, int size, unique_id id, int rank, const config *how) {
	note("ncclCommInitRankConfig %d of %d", rank, size);
	if (how->magic != 0xcafebeef || how->version < 21400 || how->blocking != 1) return fail(invalid_argument, "the config");
	if (size > most_ranks || rank < 0 || rank >= size) return fail(invalid_argument, "the rank");
	int file = open(id.bytes, O_RDWR);
	shared *with = file < 0 ? MAP_FAILED : mmap(0, sizeof *with, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (with == MAP_FAILED) return fail(system_error, "the unique id");
	close(file);
	if (with->size && with->size != size) return fail(invalid_argument, "the size differs");
	with->size = size;
	for (atomic_fetch_add(&with->joined, 1); atomic_load(&with->joined) < size;) usleep(100);
	if (rank == 0) unlink(id.bytes);
	comm *c = calloc(1, sizeof *c);
	*c = (comm){.magic = magic, .rank = rank, .size = size, .with = with};
	return *out = c, ok;
}
EXPORT int ncclCommAbort(comm *c) {
	note("ncclCommAbort");
	if (c->magic != magic || atomic_exchange(&c->aborted, 1)) return fail(invalid_usage, "a second abort");
	return ok;
}
EXPORT int ncclCommDestroy(comm *c) {
	note("ncclCommDestroy");
	if (c->magic != magic || atomic_exchange(&c->aborted, 1)) return fail(invalid_usage, "destroyed after an abort");
	return ok;
}
EXPORT int ncclCommGetAsyncError(comm *c, int *code) {
	if (c->magic != magic || atomic_load(&c->aborted)) return fail(invalid_usage, "asked after an abort");
	*code = atomic_load(&c->with->failed) ? invalid_usage : c->number ? atoi(setting("RLX_FAKE_NCCL", "0")) : 0;
	return ok;
}

// gone waits a little, and reports whether the work ends: by an abort, or as ranks differ.
static int gone(comm *c) { return usleep(20), atomic_load(&c->aborted) || atomic_load(&c->with->failed); }

static int differ(comm *c, const char *why) { return atomic_store(&c->with->failed, 1), fail(invalid_usage, why); }

// publish waits until all ranks have published the same claim; leave until all have read.
static int publish(comm *c, const claim *what, const void *data, size_t bytes) {
	shared *s = c->with;
	s->ranks[c->rank].what = *what;
	memcpy(s->ranks[c->rank].data, data, bytes);
	atomic_store(&s->ranks[c->rank].arrived, ++c->number);
	for (int i = 0; i < c->size; i++) {
		while (atomic_load(&s->ranks[i].arrived) < c->number)
			if (gone(c)) return 1;
		if (memcmp(&s->ranks[i].what, what, sizeof *what)) return differ(c, "ranks make different calls");
	}
	return 0;
}
static void leave(comm *c) {
	shared *s = c->with;
	atomic_store(&s->ranks[c->rank].left, c->number);
	for (int i = 0; i < c->size; i++)
		while (atomic_load(&s->ranks[i].left) < c->number)
			if (gone(c)) return;
}

static size_t size_of(int type) { return (const size_t[]){1, 1, 4, 4, 8, 8, 2, 4, 8, 2}[type]; }

// Numbers of the types that tests use: integers of 32 bits, f16 not, bf16 and f32.
static double get(int type, const char *p) {
	float f;
	uint32_t bits;
	uint16_t half;
	switch (type) {
	case 2: return *(int32_t *)p;
	case 3: return *(uint32_t *)p;
	case 7: return *(float *)p;
	case 8: return *(double *)p;
	case 9: return memcpy(&half, p, 2), bits = (uint32_t)half << 16, memcpy(&f, &bits, 4), f;
	}
	return 0;
}
static void put(int type, char *p, double x) {
	float f = x;
	uint32_t bits;
	switch (type) {
	case 2: *(int32_t *)p = x; break;
	case 3: *(uint32_t *)p = x; break;
	case 7: *(float *)p = x; break;
	case 8: *(double *)p = x; break;
	case 9: memcpy(&bits, &f, 4), bits += 0x7fff + (bits >> 16 & 1), *(uint16_t *)p = bits >> 16; break;
	}
}
static void reduce(comm *c, const claim *what, char *to, size_t first) {
	size_t each = size_of(what->type);
	for (size_t i = 0; i < what->count; i++) {
		double all = get(what->type, c->with->ranks[0].data + (first + i) * each);
		for (int r = 1; r < c->size; r++) {
			double x = get(what->type, c->with->ranks[r].data + (first + i) * each);
			all = what->op == 0 ? all + x : what->op == 2 ? (x > all ? x : all) : (x < all ? x : all);
		}
		put(what->type, to + i * each, all);
	}
}

typedef struct { comm *c; claim what; const char *send; char *recv; } job;

static void collect(void *data) {
	job *j = data;
	comm *c = j->c;
	claim *w = &j->what;
	size_t bytes = w->count * size_of(w->type), own = w->kind == reduce_scatter ? bytes * c->size : bytes;
	note("collective %d of %llu", w->kind, (unsigned long long)w->count);
	if (own > slot_bytes) { fail(invalid_argument, "an array that the fake cannot hold"); return; }
	if (publish(c, w, j->send, own)) return;
	if (w->kind == all_reduce) reduce(c, w, j->recv, 0);
	if (w->kind == reduce_scatter) reduce(c, w, j->recv, c->rank * w->count);
	if (w->kind == broadcast) memcpy(j->recv, c->with->ranks[w->root].data, bytes);
	for (int i = 0; w->kind == all_gather && i < c->size; i++) memcpy(j->recv + i * bytes, c->with->ranks[i].data, bytes);
	leave(c);
}

// usable checks a call before it is enqueued.
static int usable(comm *c, int kind, void *stream) {
	void *graph;
	if (c->magic != magic || atomic_load(&c->aborted)) return fail(invalid_usage, "a call after an abort");
	if (atomic_load(&c->with->failed)) return fail(invalid_usage, "a call after ranks differed");
	if (!cuStreamGetCaptureInfo_v2(stream, &(int){0}, 0, &graph, 0, 0) && !c->made[kind]) return fail(invalid_usage, "a first call that is captured");
	return c->made[kind] = 1, ok;
}
static int enqueue(comm *c, claim what, const void *send, void *recv, void *stream) {
	int code = usable(c, what.kind, stream);
	if (code) return code;
	if ((uintptr_t)send % size_of(what.type) || (uintptr_t)recv % size_of(what.type)) return fail(invalid_argument, "an array that is not aligned");
	job j = {c, what, send, recv};
	return rlx_fake_call(stream, collect, &j, sizeof j) ? cuda_error : ok;
}
EXPORT int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op, comm *c, void *stream) {
	return enqueue(c, (claim){all_reduce, type, op, 0, count}, send, recv, stream);
}
EXPORT int ncclAllGather(const void *send, void *recv, size_t count, int type, comm *c, void *stream) {
	return enqueue(c, (claim){all_gather, type, 0, 0, count}, send, recv, stream);
}
EXPORT int ncclReduceScatter(const void *send, void *recv, size_t count, int type, int op, comm *c, void *stream) {
	return enqueue(c, (claim){reduce_scatter, type, op, 0, count}, send, recv, stream);
}
EXPORT int ncclBroadcast(const void *send, void *recv, size_t count, int type, int root, comm *c, void *stream) {
	return enqueue(c, (claim){broadcast, type, 0, root, count}, send, recv, stream);
}

// Sends and receives of a group are made together, when it ends.
typedef struct { char *at; size_t bytes; int peer, receives; } transfer;
typedef struct { comm *c; int count; transfer all[2 * most_ranks]; } batch;
static __thread struct { int depth; void *stream; batch b; } group;

static void move(void *data) {
	batch *b = data;
	comm *c = b->c;
	shared *s = c->with;
	note("%d transfers", b->count);
	for (int pass = 0; pass < 2; pass++) // all sends come first
		for (int i = 0; i < b->count; i++) {
			transfer *t = &b->all[i];
			if (t->receives != pass) continue;
			int from = pass ? t->peer : c->rank, to = pass ? c->rank : t->peer;
			while (atomic_load(&s->mail[from][to].full) != pass)
				if (gone(c)) return;
			if (!pass) s->mail[from][to].bytes = t->bytes, memcpy(s->mail[from][to].data, t->at, t->bytes);
			else if (s->mail[from][to].bytes != t->bytes) { differ(c, "a send and its receive differ"); return; }
			else memcpy(t->at, s->mail[from][to].data, t->bytes);
			atomic_store(&s->mail[from][to].full, !pass);
		}
	c->number += b->count == 0;
}
static int add(comm *c, void *at, size_t count, int type, int peer, int receives, void *stream) {
	if (!group.depth || group.b.count == 2 * most_ranks || group.b.c && group.b.c != c) return fail(invalid_usage, "a send or receive outside of a group");
	if (peer < 0 || peer >= c->size || count * size_of(type) > slot_bytes) return fail(invalid_argument, "the peer");
	group.b.c = c, group.stream = stream;
	group.b.all[group.b.count++] = (transfer){at, count * size_of(type), peer, receives};
	return ok;
}
EXPORT int ncclSend(const void *send, size_t count, int type, int peer, comm *c, void *stream) { return add(c, (void *)send, count, type, peer, 0, stream); }
EXPORT int ncclRecv(void *recv, size_t count, int type, int peer, comm *c, void *stream) { return add(c, recv, count, type, peer, 1, stream); }
EXPORT int ncclGroupStart(void) {
	if (group.depth++ == 0) memset(&group.b, 0, sizeof group.b);
	return ok;
}
EXPORT int ncclGroupEnd(void) {
	if (group.depth-- != 1 || !group.b.c) return ok;
	int code = usable(group.b.c, point_to_point, group.stream);
	return code ? code : rlx_fake_call(group.stream, move, &group.b, sizeof group.b) ? cuda_error : ok;
}
