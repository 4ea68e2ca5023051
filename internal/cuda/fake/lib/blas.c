// A fake cuBLASLt: products of f32, column by column, with a bias and a matrix added. RLX_FAKE_PRODUCTS names what it lacks.
#include "fake.h"

#include <stdint.h>

int rlx_fake_clear(void *stream, void *p, size_t bytes);
int rlx_fake_call(void *stream, void (*f)(void *), const void *data, size_t bytes);

typedef struct { int compute, transposed[2], epilogue; const float *bias; } operation;
typedef struct { int type, batch; uint64_t rows, columns; int64_t row, step; } layout;
typedef struct { uint64_t workspace; } preference;
typedef struct { char algorithm[64]; size_t workspace; int rest[6]; } result;

EXPORT int cublasLtCreate(void **handle) { return note("cublasLtCreate"), *handle = malloc(1), 0; }
EXPORT size_t cublasLtGetVersion(void) { return 130100; }
EXPORT const char *cublasLtGetStatusName(int code) { return code == 7 ? "CUBLAS_STATUS_INVALID_VALUE" : "CUBLAS_STATUS"; }
EXPORT int cublasLtMatmulDescCreate(operation **o, int compute, int scale) {
	*o = calloc(1, sizeof **o);
	(*o)->epilogue = 1;
	return (*o)->compute = compute, scale == 0 ? 0 : 7;
}
EXPORT int cublasLtMatmulDescSetAttribute(operation *o, int which, const int32_t *value, size_t bytes) {
	if (which == 7 && bytes == 4) return o->epilogue = *value, 0;
	if (which == 8 && bytes == 8) return memcpy(&o->bias, value, bytes), 0;
	if (which < 3 || which > 4 || bytes != 4) return 7;
	return o->transposed[which - 3] = *value, 0;
}
EXPORT int cublasLtMatmulDescDestroy(operation *o) { return free(o), 0; }
EXPORT int cublasLtMatrixLayoutCreate(layout **l, int type, uint64_t rows, uint64_t columns, int64_t row) {
	*l = calloc(1, sizeof **l);
	**l = (layout){type, 1, rows, columns, row};
	return row < (int64_t)rows ? 7 : 0;
}
EXPORT int cublasLtMatrixLayoutSetAttribute(layout *l, int which, const void *value, size_t bytes) {
	if (which == 5 && bytes == 4) return l->batch = *(int32_t *)value, 0;
	if (which == 6 && bytes == 8) return l->step = *(int64_t *)value, 0;
	return 7;
}
EXPORT int cublasLtMatrixLayoutDestroy(layout *l) { return free(l), 0; }
EXPORT int cublasLtMatmulPreferenceCreate(preference **p) { return *p = calloc(1, sizeof **p), 0; }
EXPORT int cublasLtMatmulPreferenceSetAttribute(preference *p, int which, const uint64_t *value, size_t bytes) {
	return which == 1 && bytes == 8 ? (p->workspace = *value, 0) : 7;
}
EXPORT int cublasLtMatmulPreferenceDestroy(preference *p) { return free(p), 0; }

// size returns a size of a matrix operand.
static uint64_t size(const layout *l, int transposed, int columns) { return transposed != columns ? l->columns : l->rows; }

// lacks reports whether the library returns for a product, now or later, that it has no algorithm.
static int lacks(const char *when, const operation *o, const layout *a, const layout *d) {
	unsigned long long m = 0, n = 0, k = 0;
	char which[16] = "";
	int given = sscanf(setting("RLX_FAKE_PRODUCTS", ""), "%15s %llu %llu %llu", which, &m, &n, &k);
	if (!strcmp(which, "bias")) return !strcmp(when, "none") && o->epilogue == 4;
	if (strcmp(which, when)) return 0;
	return given == 1 || m == d->rows && n == d->columns && k == size(a, o->transposed[0], 1);
}

EXPORT int cublasLtMatmulAlgoGetHeuristic(void *handle, operation *o, layout *a, layout *b, layout *c, layout *d, preference *p,
                                          int wanted, result *out, int *found) {
	note("cublasLtMatmulAlgoGetHeuristic");
	if (size(a, o->transposed[0], 0) != d->rows || size(b, o->transposed[1], 1) != d->columns) return 7;
	if (c->rows != d->rows || c->columns != d->columns || c->type != d->type) return 7;
	if (size(a, o->transposed[0], 1) != size(b, o->transposed[1], 0) || a->batch != d->batch || b->batch != d->batch) return 7;
	*found = !lacks("none", o, a, d);
	memset(out, 0, sizeof *out);
	return memcpy(out->algorithm, "fake", 4), 0;
}

typedef struct { operation o; layout a, b, c, d; float beta; const float *x, *y, *w; float *z; } job;

static float at(const float *x, const layout *l, int transposed, int64_t batch, int64_t r, int64_t c) {
	return x[batch * l->step + (transposed ? r * l->row + c : c * l->row + r)];
}

static void multiply(void *data) {
	job *j = data;
	uint64_t k = size(&j->a, j->o.transposed[0], 1);
	note("product %d: %d times %llu %llu %llu", j->o.compute, j->d.batch, (unsigned long long)j->d.rows, (unsigned long long)j->d.columns, (unsigned long long)k);
	for (int64_t n = 0; n < j->d.batch; n++)
		for (uint64_t c = 0; c < j->d.columns; c++)
			for (uint64_t r = 0; r < j->d.rows; r++) {
				float sum = 0;
				for (uint64_t i = 0; i < k; i++) sum += at(j->x, &j->a, j->o.transposed[0], n, r, i) * at(j->y, &j->b, j->o.transposed[1], n, i, c);
				if (j->beta) sum += at(j->w, &j->c, 0, n, r, c);
				if (j->o.epilogue == 4) sum += j->o.bias[r];
				j->z[n * j->d.step + c * j->d.row + r] = sum;
			}
}

EXPORT int cublasLtMatmul(void *handle, operation *o, const float *alpha, const float *x, layout *a, const float *y, layout *b, const float *beta,
                          const float *c, layout *lc, float *z, layout *d, const char *algorithm, void *workspace, size_t bytes, void *stream) {
	note("cublasLtMatmul");
	if (*alpha != 1 || a->type || d->type || strncmp(algorithm, "fake", 4) || ((uintptr_t)workspace & 255)) return 7;
	if (lacks("later", o, a, d)) return 15;
	if (atoi(setting("RLX_FAKE_PRODUCTS", "0"))) return atoi(setting("RLX_FAKE_PRODUCTS", "0"));
	job j = {*o, *a, *b, *lc, *d, *beta, x, y, c, z};
	memset(workspace, 0xa5, bytes);
	if (bytes) rlx_fake_clear(stream, workspace, bytes < 64 ? bytes / 4 * 4 : 64); // as NVIDIA's does
	return rlx_fake_call(stream, multiply, &j, sizeof j);
}
