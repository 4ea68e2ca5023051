// A fake cuSOLVER: factorisations of f32 and f64 by columns, in f64. RLX_FAKE_SOLVER names what fails.
#include "fake.h"

#include <math.h>
#include <stdint.h>

int rlx_fake_call(void *stream, void (*f)(void *), const void *data, size_t bytes);

typedef struct { void *stream; } solver;
typedef struct { int kind, type; int64_t m, n; char *a; char *other; int *info; char *work; size_t bytes; } job;

enum { cholesky, lu, householder, eigen };
enum { workspace = 256, host_workspace = 16 };

EXPORT int cusolverDnCreate(solver **s) { return note("cusolverDnCreate"), *s = calloc(1, sizeof **s), 0; }
EXPORT int cusolverDnDestroy(solver *s) { return note("cusolverDnDestroy"), free(s), 0; }
EXPORT int cusolverDnCreateParams(void **p) { return *p = malloc(1), 0; }
EXPORT int cusolverDnDestroyParams(void *p) { return free(p), 0; }
EXPORT int cusolverDnSetStream(solver *s, void *stream) { return s->stream = stream, 0; }

static int sizes(size_t *device, size_t *host) {
	*device = strcmp(setting("RLX_FAKE_SOLVER", ""), "large") ? workspace : (size_t)1 << 40;
	return *host = host_workspace, 0;
}

static double get(const job *j, const char *x, int64_t i) { return j->type ? ((const double *)x)[i] : ((const float *)x)[i]; }
static void put(const job *j, char *x, int64_t i, double v) {
	if (j->type) ((double *)x)[i] = v;
	else ((float *)x)[i] = v;
}
#define A(i, c) a[(c) * m + (i)]

static void factor_cholesky(double *a, int64_t m, int *info) {
	for (int64_t k = 0; k < m; k++) {
		if (!(A(k, k) > 0)) { *info = k + 1; return; }
		double root = sqrt(A(k, k));
		for (int64_t i = k; i < m; i++) A(i, k) /= root;
		for (int64_t c = k + 1; c < m; c++)
			for (int64_t i = c; i < m; i++) A(i, c) -= A(i, k) * A(c, k);
	}
}

static void factor_lu(double *a, int64_t m, int64_t n, int64_t *pivots, int *info) {
	for (int64_t k = 0; k < m && k < n; k++) {
		int64_t best = k;
		for (int64_t i = k + 1; i < m; i++) if (fabs(A(i, k)) > fabs(A(best, k))) best = i;
		pivots[k] = best + 1;
		for (int64_t c = 0; c < n; c++) { double x = A(k, c); A(k, c) = A(best, c); A(best, c) = x; }
		if (A(k, k) == 0) { if (!*info) *info = k + 1; continue; }
		for (int64_t i = k + 1; i < m; i++) A(i, k) /= A(k, k);
		for (int64_t c = k + 1; c < n; c++)
			for (int64_t i = k + 1; i < m; i++) A(i, c) -= A(i, k) * A(k, c);
	}
}

static void factor_householder(const job *j, double *a, int64_t m, int64_t n) {
	for (int64_t k = 0; k < m && k < n; k++) {
		double rest = 0;
		for (int64_t i = k + 1; i < m; i++) rest += A(i, k) * A(i, k);
		double head = A(k, k), end = -copysign(sqrt(head * head + rest), head), tau = rest ? (end - head) / end : 0;
		put(j, j->other, k, tau);
		if (!rest) continue;
		for (int64_t i = k + 1; i < m; i++) A(i, k) /= head - end;
		A(k, k) = end;
		for (int64_t c = k + 1; c < n; c++) {
			double sum = A(k, c);
			for (int64_t i = k + 1; i < m; i++) sum += A(i, k) * A(i, c);
			A(k, c) -= tau * sum;
			for (int64_t i = k + 1; i < m; i++) A(i, c) -= tau * sum * A(i, k);
		}
	}
}

// factor_eigen rotates pairs of rows and columns, and stores the eigenvectors, sorted by their values.
static void factor_eigen(const job *j, double *a, int64_t m) {
	double *v = calloc(m * m, sizeof *v);
	for (int64_t i = 0; i < m; i++) v[i * m + i] = 1;
	for (int64_t c = 0; c < m; c++) for (int64_t i = 0; i < c; i++) A(i, c) = A(c, i);
	for (int sweep = 0; sweep < 30; sweep++)
		for (int64_t p = 0; p < m; p++)
			for (int64_t q = p + 1; q < m; q++) {
				if (fabs(A(p, q)) < 1e-18) continue;
				double ratio = (A(q, q) - A(p, p)) / (2 * A(p, q));
				double tangent = copysign(1, ratio) / (fabs(ratio) + hypot(1, ratio)), c = 1 / hypot(1, tangent), s = tangent * c;
				for (int64_t k = 0; k < m; k++) { double x = A(p, k), y = A(q, k); A(p, k) = c * x - s * y, A(q, k) = s * x + c * y; }
				for (int64_t k = 0; k < m; k++) { double x = A(k, p), y = A(k, q); A(k, p) = c * x - s * y, A(k, q) = s * x + c * y; }
				for (int64_t k = 0; k < m; k++) { double x = v[p * m + k], y = v[q * m + k]; v[p * m + k] = c * x - s * y, v[q * m + k] = s * x + c * y; }
			}
	for (int64_t to = 0; to < m; to++) {
		int64_t least = to;
		for (int64_t i = to; i < m; i++) if (A(i, i) < A(least, least)) least = i;
		double value = A(least, least);
		A(least, least) = A(to, to), A(to, to) = value;
		put(j, j->other, to, value);
		for (int64_t k = 0; k < m; k++) { double x = v[least * m + k]; v[least * m + k] = v[to * m + k], v[to * m + k] = x; }
	}
	memcpy(a, v, m * m * sizeof *a);
	free(v);
}

static void run(void *data) {
	job *j = data;
	const int64_t m = j->m, n = j->n;
	note("factor %d: %lld %lld", j->kind, (long long)m, (long long)n);
	memset(j->work, 0xa5, j->bytes);
	double *a = malloc(m * n * sizeof *a);
	for (int64_t i = 0; i < m * n; i++) a[i] = get(j, j->a, i);
	*j->info = 0;
	switch (j->kind) {
	case cholesky: factor_cholesky(a, m, j->info); break;
	case lu: factor_lu(a, m, n, (int64_t *)j->other, j->info); break;
	case householder: factor_householder(j, a, m, n); break;
	default: factor_eigen(j, a, m);
	}
	for (int64_t i = 0; i < m * n; i++) put(j, j->a, i, a[i]);
	free(a);
}

// ask enqueues a factorisation whose arguments are valid.
static int ask(solver *s, int kind, int type, int64_t m, int64_t n, int64_t row, char *a, char *other, char *work, size_t bytes, size_t host, int *info) {
	if (row != m || type > 1 || bytes != workspace || host != host_workspace || ((uintptr_t)work & 255)) return 3;
	if (atoi(setting("RLX_FAKE_SOLVER", "0"))) return atoi(setting("RLX_FAKE_SOLVER", "0"));
	return rlx_fake_call(s->stream, run, &(job){kind, type, m, n, a, other, info, work, bytes}, sizeof(job));
}

EXPORT int cusolverDnXpotrf_bufferSize(solver *s, void *p, int uplo, int64_t n, int t, void *a, int64_t row, int c, size_t *d, size_t *h) { return uplo ? 3 : sizes(d, h); }
EXPORT int cusolverDnXpotrf(solver *s, void *p, int uplo, int64_t n, int t, char *a, int64_t row, int c, char *work, size_t bytes, void *host, size_t hosts, int *info) {
	return uplo ? 3 : ask(s, cholesky, t, n, n, row, a, 0, work, bytes, hosts, info);
}
EXPORT int cusolverDnXgetrf_bufferSize(solver *s, void *p, int64_t m, int64_t n, int t, void *a, int64_t row, int c, size_t *d, size_t *h) { return sizes(d, h); }
EXPORT int cusolverDnXgetrf(solver *s, void *p, int64_t m, int64_t n, int t, char *a, int64_t row, int64_t *pivots, int c, char *work, size_t bytes, void *host, size_t hosts, int *info) {
	return ask(s, lu, t, m, n, row, a, (char *)pivots, work, bytes, hosts, info);
}
EXPORT int cusolverDnXgeqrf_bufferSize(solver *s, void *p, int64_t m, int64_t n, int t, void *a, int64_t row, int tt, void *tau, int c, size_t *d, size_t *h) { return sizes(d, h); }
EXPORT int cusolverDnXgeqrf(solver *s, void *p, int64_t m, int64_t n, int t, char *a, int64_t row, int tt, char *tau, int c, char *work, size_t bytes, void *host, size_t hosts, int *info) {
	return ask(s, householder, t, m, n, row, a, tau, work, bytes, hosts, info);
}
EXPORT int cusolverDnXsyevd_bufferSize(solver *s, void *p, int jobz, int uplo, int64_t n, int t, void *a, int64_t row, int tw, void *w, int c, size_t *d, size_t *h) { return jobz != 1 || uplo ? 3 : sizes(d, h); }
EXPORT int cusolverDnXsyevd(solver *s, void *p, int jobz, int uplo, int64_t n, int t, char *a, int64_t row, int tw, char *w, int c, char *work, size_t bytes, void *host, size_t hosts, int *info) {
	return jobz != 1 || uplo ? 3 : ask(s, eigen, t, n, n, row, a, w, work, bytes, hosts, info);
}
