//go:build amd64 || arm64

#include "cuda_linux.h"

#include <string.h>

// Attributes and types of cublasLt.h.
enum {
	desc_transpose_a = 3, desc_transpose_b = 4, desc_epilogue = 7, desc_bias = 8,
	layout_batch = 5, layout_step = 6,
	preference_workspace = 1,
	real_f32 = 0, operation_transposed = 1,
};

// cublasLtMatmulHeuristicResult_t begins with the algorithm, 64 bytes, and then the
// size of its workspace.
typedef struct {
	char algorithm[64];
	size_t workspace;
	int state;
	float waves;
	int reserved[4];
} heuristic_result;

int rlx_blas_create(const rlx_blas *blas, rlx_device *d, rlx_handle *handle) {
	int r = d->cu->cuCtxSetCurrent(d->context);
	return r ? r : blas->create(handle);
}

// RLX_BLAS_TRY makes a call unless one before has failed, and notes its name.
#define RLX_BLAS_TRY(name, function, args) \
	if (!r) *call = name, r = blas->function args

static int lay_out(const rlx_blas *blas, const rlx_shape *s, int i, rlx_handle *layout, const char **call) {
	const uint64_t rows[] = {s->transposed[0] ? s->k : s->m, s->transposed[1] ? s->n : s->k, s->m, s->m};
	const uint64_t columns[] = {s->transposed[0] ? s->m : s->k, s->transposed[1] ? s->k : s->n, s->n, s->n};
	int r = 0;
	RLX_BLAS_TRY("cublasLtMatrixLayoutCreate", layout_create, (layout, i < 2 ? s->factors : s->result, rows[i], columns[i], s->row[i]));
	RLX_BLAS_TRY("cublasLtMatrixLayoutSetAttribute", layout_set, (*layout, layout_batch, &s->batch, sizeof s->batch));
	RLX_BLAS_TRY("cublasLtMatrixLayoutSetAttribute", layout_set, (*layout, layout_step, &s->step[i], sizeof s->step[i]));
	return r;
}

static void discard(const rlx_blas *blas, rlx_product *p) {
	for (int i = 0; i < 4; i++)
		if (p->layout[i]) blas->layout_destroy(p->layout[i]);
	if (p->operation) blas->operation_destroy(p->operation);
}

int rlx_product_make(const rlx_blas *blas, rlx_handle handle, rlx_device *d, const rlx_shape *s, rlx_product *p, const char **call) {
	const int32_t transposed = operation_transposed;
	const rlx_ptr somewhere = 256; // only the alignment of the bias is read
	rlx_handle preference = 0;
	heuristic_result found;
	int count = 0, r = d->cu->cuCtxSetCurrent(d->context);
	memset(p, 0, sizeof *p);
	RLX_BLAS_TRY("cublasLtMatmulDescCreate", operation_create, (&p->operation, s->compute, real_f32));
	for (int i = 0; i < 2; i++)
		if (s->transposed[i]) RLX_BLAS_TRY("cublasLtMatmulDescSetAttribute", operation_set, (p->operation, desc_transpose_a + i, &transposed, sizeof transposed));
	if (s->epilogue != rlx_epilogue_none)
		RLX_BLAS_TRY("cublasLtMatmulDescSetAttribute", operation_set, (p->operation, desc_epilogue, &s->epilogue, sizeof s->epilogue));
	if (s->epilogue == rlx_epilogue_bias)
		RLX_BLAS_TRY("cublasLtMatmulDescSetAttribute", operation_set, (p->operation, desc_bias, &somewhere, sizeof somewhere));
	for (int i = 0; i < 3 + s->adds && !r; i++) r = lay_out(blas, s, i, &p->layout[i], call);
	RLX_BLAS_TRY("cublasLtMatmulPreferenceCreate", preference_create, (&preference));
	RLX_BLAS_TRY("cublasLtMatmulPreferenceSetAttribute", preference_set, (preference, preference_workspace, &s->workspace, sizeof s->workspace));
	RLX_BLAS_TRY("cublasLtMatmulAlgoGetHeuristic", heuristic,
	        (handle, p->operation, p->layout[0], p->layout[1], p->layout[2 + s->adds], p->layout[2], preference, 1, &found, &count));
	if (preference) blas->preference_destroy(preference);
	if (!r && count == 0) r = rlx_no_algorithm;
	if (r) return discard(blas, p), r;
	memcpy(p->algorithm, found.algorithm, sizeof p->algorithm);
	p->workspace = s->workspace;
	p->epilogue = s->epilogue;
	p->adds = s->adds;
	return 0;
}

int rlx_product_run(const rlx_blas *blas, rlx_handle handle, rlx_device *d, const rlx_product *p, rlx_ptr first, rlx_ptr second,
                    rlx_ptr workspace, rlx_ptr result, rlx_ptr bias, rlx_ptr added, rlx_handle stream) {
	const float one = 1, factor = p->adds;
	int r = d->cu->cuCtxSetCurrent(d->context);
	if (!r && p->epilogue == rlx_epilogue_bias) r = blas->operation_set(p->operation, desc_bias, &bias, sizeof bias);
	if (r) return r;
	return blas->matmul(handle, p->operation, &one, first, p->layout[0], second, p->layout[1], &factor, p->adds ? added : result,
	                    p->layout[2 + p->adds], result, p->layout[2], p->algorithm, workspace, p->workspace, stream);
}
