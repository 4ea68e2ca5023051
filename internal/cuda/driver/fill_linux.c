//go:build amd64 || arm64

#include "cuda_linux.h"

#include <stdlib.h>

// CUDA_MEMSET_NODE_PARAMS and CUDA_KERNEL_NODE_PARAMS_v2 of cuda.h.
typedef struct {
	rlx_ptr to;
	size_t pitch;
	unsigned value, element;
	size_t width, height;
} fill_params;

typedef struct {
	rlx_handle function;
	unsigned grid[3], block[3], shared;
	void **arguments, **extra;
	rlx_handle kernel, context;
} kernel_params;

enum { memset_node = 2, fill_threads = 256, most_groups = 1024 };

// counted reports whether the numbers of a fill are those of 32 bits that the kernel has.
static int counted(const fill_params *p) {
	const size_t most = 0x7fffffff;
	return p->width && p->height && p->width * p->element <= most && p->height <= most && (p->height == 1 || p->pitch <= most);
}

// repeated returns the word that a fill repeats.
static unsigned repeated(const fill_params *p) {
	return p->element == 1 ? (p->value & 0xff) * 0x01010101u : p->element == 2 ? (p->value & 0xffff) * 0x00010001u : p->value;
}

// replace puts a kernel between the nodes around a fill.
static int replace(rlx_device *d, rlx_handle graph, rlx_handle node, rlx_handle fill, fill_params *p, const char **call) {
	const rlx_cuda *cu = d->cu;
	size_t before = 0, behind = 0;
	int r = 0;
	RLX_TRY(cuGraphNodeGetDependencies, (node, 0, &before));
	RLX_TRY(cuGraphNodeGetDependentNodes, (node, 0, &behind));
	rlx_handle *nodes = calloc(before + 2 * behind + 1, sizeof *nodes), *from = nodes + before, *to = from + behind, made = 0;
	if (before) RLX_TRY(cuGraphNodeGetDependencies, (node, nodes, &before)); // the driver refuses an empty list
	if (behind) RLX_TRY(cuGraphNodeGetDependentNodes, (node, to, &behind));
	unsigned width = p->width * p->element, rows = p->height, pitch = rows > 1 ? p->pitch : 0, word = repeated(p);
	unsigned groups = (width / 4 + fill_threads) / fill_threads;
	void *arguments[] = {&p->to, &width, &rows, &pitch, &word};
	kernel_params k = {
		.function = fill, .grid = {groups < most_groups ? groups : most_groups, 1, 1}, .block = {fill_threads, 1, 1}, .arguments = arguments,
	};
	RLX_TRY(cuGraphAddKernelNode, (&made, graph, before ? nodes : 0, before, &k));
	for (size_t i = 0; i < behind; i++) from[i] = made;
	if (behind) RLX_TRY(cuGraphAddDependencies, (graph, from, to, behind));
	RLX_TRY(cuGraphDestroyNode, (node));
	free(nodes);
	return r;
}

// nodes_of gives the nodes of a graph, in memory that is to be freed.
static int nodes_of(rlx_device *d, rlx_handle graph, rlx_handle **nodes, size_t *count, const char **call) {
	const rlx_cuda *cu = d->cu;
	int r = 0;
	*count = 0;
	RLX_TRY(cuCtxSetCurrent, (d->context));
	RLX_TRY(cuGraphGetNodes, (graph, 0, count));
	*nodes = calloc(*count + 1, sizeof **nodes);
	if (*count) RLX_TRY(cuGraphGetNodes, (graph, *nodes, count));
	return r;
}

int rlx_fills_to_kernels(rlx_device *d, rlx_handle graph, rlx_handle fill, const char **call) {
	const rlx_cuda *cu = d->cu;
	rlx_handle *nodes;
	size_t count;
	int r = nodes_of(d, graph, &nodes, &count, call);
	for (size_t i = 0; i < count && !r; i++) {
		int type = 0;
		fill_params p;
		RLX_TRY(cuGraphNodeGetType, (nodes[i], &type));
		if (r || type != memset_node) continue;
		RLX_TRY(cuGraphMemsetNodeGetParams, (nodes[i], &p));
		if (!r && counted(&p)) r = replace(d, graph, nodes[i], fill, &p, call);
	}
	free(nodes);
	return r;
}

int rlx_count_nodes(rlx_device *d, rlx_handle graph, int *kinds, int most, const char **call) {
	const rlx_cuda *cu = d->cu;
	rlx_handle *nodes;
	size_t count;
	int r = nodes_of(d, graph, &nodes, &count, call);
	for (size_t i = 0; i < count && !r; i++) {
		int type = 0;
		RLX_TRY(cuGraphNodeGetType, (nodes[i], &type));
		if (type >= 0 && type < most) kinds[type]++;
	}
	free(nodes);
	return r;
}
