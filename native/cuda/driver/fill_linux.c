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

#define TRY(function, args) \
	if (!r) *call = #function, r = cu->function args

// replace puts a kernel between the nodes around a fill.
static int replace(rlx_device *d, rlx_handle graph, rlx_handle node, rlx_handle fill, fill_params *p, const char **call) {
	const rlx_cuda *cu = d->cu;
	size_t before = 0, behind = 0;
	int r = 0;
	TRY(cuGraphNodeGetDependencies, (node, 0, &before));
	TRY(cuGraphNodeGetDependentNodes, (node, 0, &behind));
	rlx_handle *nodes = calloc(before + 2 * behind + 1, sizeof *nodes), *from = nodes + before, *to = from + behind, made = 0;
	if (before) TRY(cuGraphNodeGetDependencies, (node, nodes, &before)); // no list of none is asked for
	if (behind) TRY(cuGraphNodeGetDependentNodes, (node, to, &behind));
	unsigned width = p->width * p->element, rows = p->height, pitch = rows > 1 ? p->pitch : 0, word = repeated(p);
	unsigned groups = (width / 4 + fill_threads) / fill_threads;
	void *arguments[] = {&p->to, &width, &rows, &pitch, &word};
	kernel_params k = {
		.function = fill, .grid = {groups < most_groups ? groups : most_groups, 1, 1}, .block = {fill_threads, 1, 1}, .arguments = arguments,
	};
	TRY(cuGraphAddKernelNode, (&made, graph, before ? nodes : 0, before, &k));
	for (size_t i = 0; i < behind; i++) from[i] = made;
	if (behind) TRY(cuGraphAddDependencies, (graph, from, to, behind));
	TRY(cuGraphDestroyNode, (node));
	free(nodes);
	return r;
}

int rlx_fills_to_kernels(rlx_device *d, rlx_handle graph, rlx_handle fill, const char **call) {
	const rlx_cuda *cu = d->cu;
	size_t count = 0;
	int r = 0;
	TRY(cuCtxSetCurrent, (d->context));
	TRY(cuGraphGetNodes, (graph, 0, &count));
	rlx_handle *nodes = calloc(count + 1, sizeof *nodes);
	TRY(cuGraphGetNodes, (graph, nodes, &count));
	for (size_t i = 0; i < count && !r; i++) {
		int type = 0;
		fill_params p;
		TRY(cuGraphNodeGetType, (nodes[i], &type));
		if (r || type != memset_node) continue;
		TRY(cuGraphMemsetNodeGetParams, (nodes[i], &p));
		if (!r && counted(&p)) r = replace(d, graph, nodes[i], fill, &p, call);
	}
	free(nodes);
	return r;
}

int rlx_count_nodes(rlx_device *d, rlx_handle graph, int *kinds, int most, const char **call) {
	const rlx_cuda *cu = d->cu;
	size_t count = 0;
	int r = 0;
	TRY(cuCtxSetCurrent, (d->context));
	TRY(cuGraphGetNodes, (graph, 0, &count));
	rlx_handle *nodes = calloc(count + 1, sizeof *nodes);
	if (count) TRY(cuGraphGetNodes, (graph, nodes, &count));
	for (size_t i = 0; i < count && !r; i++) {
		int type = 0;
		TRY(cuGraphNodeGetType, (nodes[i], &type));
		if (type >= 0 && type < most) kinds[type]++;
	}
	free(nodes);
	return r;
}
