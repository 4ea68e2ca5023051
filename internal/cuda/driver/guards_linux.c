//go:build amd64 || arm64

#include "cuda_linux.h"

// CUmemLocation, CUmemAllocationProp and CUmemAccessDesc of cuda.h.
typedef struct {
	int type, id;
} location;
typedef struct {
	int type, handles;
	location at;
	void *windows;
	unsigned char flags[8];
} allocation;
typedef struct {
	location at;
	int access;
} access_to;

enum { on_device = 1, pinned = 1, read_and_write = 3, least = 0 };

int rlx_guarded_make(rlx_device *d, size_t bytes, rlx_guarded *w, const char **call) {
	const rlx_cuda *cu = d->cu;
	const allocation what = {.type = pinned, .at = {on_device, d->number}};
	const access_to access = {{on_device, d->number}, read_and_write};
	size_t page = 1;
	int r = 0;
	RLX_TRY(cuCtxSetCurrent, (d->context));
	RLX_TRY(cuMemGetAllocationGranularity, (&page, &what, least));
	*w = (rlx_guarded){.bytes = (bytes + page - 1) / page * page};
	w->reserved = w->bytes + 2 * page;
	RLX_TRY(cuMemAddressReserve, (&w->range, w->reserved, page, 0, 0));
	w->at = w->range + page;
	RLX_TRY(cuMemCreate, (&w->memory, w->bytes, &what, 0));
	RLX_TRY(cuMemMap, (w->at, w->bytes, 0, w->memory, 0));
	RLX_TRY(cuMemSetAccess, (w->at, w->bytes, &access, 1));
	return r;
}

int rlx_guarded_free(rlx_device *d, const rlx_guarded *w, const char **call) {
	const rlx_cuda *cu = d->cu;
	int r = 0;
	RLX_TRY(cuCtxSetCurrent, (d->context));
	RLX_TRY(cuMemUnmap, (w->at, w->bytes));
	RLX_TRY(cuMemRelease, (w->memory));
	RLX_TRY(cuMemAddressFree, (w->range, w->reserved));
	return r;
}
