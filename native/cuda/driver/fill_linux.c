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

// fill_word returns the word that a fill repeats, or reports that it does not write
// whole words.
static int fill_word(const fill_params *p, unsigned *word) {
	if (p->height != 1 || p->to % 4 || p->width * p->element % 4 || p->width * p->element / 4 > 0x7fffffff) return 0;
	*word = p->element == 1 ? (p->value & 0xff) * 0x01010101u : p->element == 2 ? (p->value & 0xffff) * 0x00010001u : p->value;
	return 1;
}

#define TRY(function, args) \
	if (!r) *call = #function, r = cu->function args

// replace puts a kernel between the nodes around a fill.
static int replace(rlx_device *d, rlx_handle graph, rlx_handle node, rlx_handle fill, fill_params *p, unsigned word, const char **call) {
	const rlx_cuda *cu = d->cu;
	size_t before = 0, behind = 0;
	int r = 0;
	TRY(cuGraphNodeGetDependencies, (node, 0, &before));
	TRY(cuGraphNodeGetDependentNodes, (node, 0, &behind));
	rlx_handle *nodes = calloc(before + 2 * behind + 1, sizeof *nodes), *from = nodes + before, *to = from + behind, made = 0;
	if (before) TRY(cuGraphNodeGetDependencies, (node, nodes, &before)); // no list of none is asked for
	if (behind) TRY(cuGraphNodeGetDependentNodes, (node, to, &behind));
	unsigned words = p->width * p->element / 4, groups = (words + fill_threads - 1) / fill_threads;
	void *arguments[] = {&p->to, &words, &word};
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
		unsigned word;
		fill_params p;
		TRY(cuGraphNodeGetType, (nodes[i], &type));
		if (r || type != memset_node) continue;
		TRY(cuGraphMemsetNodeGetParams, (nodes[i], &p));
		if (!r && p.width && fill_word(&p, &word)) r = replace(d, graph, nodes[i], fill, &p, word, call);
	}
	free(nodes);
	return r;
}
