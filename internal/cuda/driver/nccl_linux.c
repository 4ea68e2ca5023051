//go:build amd64 || arm64

#include "cuda_linux.h"

#include <limits.h>
#include <string.h>

// ncclConfig_t as of NCCL 2.18, which later versions take.
typedef struct {
	size_t size;
	unsigned magic, version;
	int blocking, cga_cluster_size, min_ctas, max_ctas;
	const char *net_name;
	int split_share;
} config;

int rlx_nccl_init(const rlx_nccl *n, rlx_device *d, rlx_handle *comm, int size, const char *id, int rank) {
	config c = {
		.size = sizeof c, .magic = 0xcafebeef, .version = 21800, .blocking = 1,
		.cga_cluster_size = INT_MIN, .min_ctas = INT_MIN, .max_ctas = INT_MIN, .split_share = INT_MIN,
	};
	rlx_nccl_id by_value;
	memcpy(&by_value, id, sizeof by_value);
	int r = d->cu->cuCtxSetCurrent(d->context);
	return r ? r : n->init(comm, size, by_value, rank, &c);
}

int rlx_nccl_abort(const rlx_nccl *n, rlx_device *d, rlx_handle comm) {
	int r = d->cu->cuCtxSetCurrent(d->context);
	return r ? r : n->abort(comm);
}

int rlx_nccl_destroy(const rlx_nccl *n, rlx_device *d, rlx_handle comm) {
	int r = d->cu->cuCtxSetCurrent(d->context);
	return r ? r : n->destroy(comm);
}

// RLX_NCCL_TRY makes a call unless one before has failed, and notes its name.
#define RLX_NCCL_TRY(name, function, args) \
	if (!r) *call = name, r = n->function args

// exchange_parts sends part i to rank i and receives as many from each.
static int exchange_parts(const rlx_nccl *n, rlx_handle comm, const rlx_collective *x, rlx_ptr send, rlx_ptr recv,
                          rlx_handle stream, const char **call) {
	enum { bytes = 1 };
	size_t part = x->bytes / x->size;
	int r = 0;
	RLX_NCCL_TRY("ncclGroupStart", group_start, ());
	for (int i = 0; i < x->size; i++) {
		RLX_NCCL_TRY("ncclSend", send, (send + i * part, part, bytes, i, comm, stream));
		RLX_NCCL_TRY("ncclRecv", recv, (recv + i * part, part, bytes, i, comm, stream));
	}
	int ended = n->group_end(); // also after a failure
	return r ? r : (*call = "ncclGroupEnd", ended);
}

static int permute(const rlx_nccl *n, rlx_device *d, rlx_handle comm, const rlx_collective *x, rlx_ptr send, rlx_ptr recv,
                   rlx_handle stream, const char **call) {
	enum { bytes = 1 };
	int r = 0;
	if (x->sender < 0) {
		*call = "cuMemsetD32Async";
		r = d->cu->cuMemsetD32Async(recv, 0, (x->bytes + 3) / 4, stream);
	}
	if (x->sender == x->rank) {
		*call = "cuMemcpyDtoDAsync";
		return r ? r : d->cu->cuMemcpyDtoDAsync(recv, send, x->bytes, stream);
	}
	RLX_NCCL_TRY("ncclGroupStart", group_start, ());
	if (r) return r;
	if (x->receiver >= 0) RLX_NCCL_TRY("ncclSend", send, (send, x->bytes, bytes, x->receiver, comm, stream));
	if (x->sender >= 0) RLX_NCCL_TRY("ncclRecv", recv, (recv, x->bytes, bytes, x->sender, comm, stream));
	int ended = n->group_end();
	return r ? r : (*call = "ncclGroupEnd", ended);
}

int rlx_nccl_run(const rlx_nccl *n, rlx_device *d, rlx_handle comm, const rlx_collective *x, rlx_ptr send, rlx_ptr recv,
                 rlx_handle stream, const char **call) {
	enum { all_reduce, all_gather, reduce_scatter, all_to_all, permutation, broadcast };
	*call = "cuCtxSetCurrent";
	int r = d->cu->cuCtxSetCurrent(d->context);
	switch (x->op) {
	case all_reduce: RLX_NCCL_TRY("ncclAllReduce", all_reduce, (send, recv, x->count, x->type, x->reduction, comm, stream)); break;
	case all_gather: RLX_NCCL_TRY("ncclAllGather", all_gather, (send, recv, x->count, x->type, comm, stream)); break;
	case reduce_scatter: RLX_NCCL_TRY("ncclReduceScatter", reduce_scatter, (send, recv, x->count, x->type, x->reduction, comm, stream)); break;
	case all_to_all: return r ? r : exchange_parts(n, comm, x, send, recv, stream, call);
	case permutation: return r ? r : permute(n, d, comm, x, send, recv, stream, call);
	case broadcast: RLX_NCCL_TRY("ncclBroadcast", broadcast, (send, recv, x->count, x->type, x->root, comm, stream)); break;
	}
	return r;
}
