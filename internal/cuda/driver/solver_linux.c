//go:build amd64 || arm64

#include "cuda_linux.h"

// Of cublasFillMode_t and cusolverEigMode_t. By columns the lower triangle is twice as fast to factor as the upper
// one (cuSOLVER 12.0, an H200).
enum { fill_lower = 0, with_vectors = 1 };

// Of routine.FactorOp.
enum { op_cholesky, op_lu, op_householder, op_eigen };

// RLX_SOLVE makes a call of a function of the library, and notes its name.
#define RLX_SOLVE(name, function, args) (*call = name, solver->function args)

int rlx_solver_create(const rlx_solver *solver, rlx_device *d, rlx_handle *handle, rlx_handle *params, const char **call) {
	*call = "cuCtxSetCurrent";
	int r = d->cu->cuCtxSetCurrent(d->context);
	if (!r) r = RLX_SOLVE("cusolverDnCreate", create, (handle));
	if (!r) r = RLX_SOLVE("cusolverDnCreateParams", create_params, (params));
	return r;
}

int rlx_solver_destroy(const rlx_solver *solver, rlx_device *d, rlx_handle handle, rlx_handle params, const char **call) {
	*call = "cuCtxSetCurrent";
	int r = d->cu->cuCtxSetCurrent(d->context);
	if (!r && params) r = RLX_SOLVE("cusolverDnDestroyParams", destroy_params, (params));
	if (!r && handle) r = RLX_SOLVE("cusolverDnDestroy", destroy, (handle));
	return r;
}

int rlx_factor_size(const rlx_solver *solver, rlx_device *d, rlx_handle handle, rlx_handle params, rlx_factor *f, const char **call) {
	const int64_t m = f->rows, n = f->columns;
	const int t = f->type;
	size_t *device = &f->workspace, *host = &f->host_bytes;
	*call = "cuCtxSetCurrent";
	int r = d->cu->cuCtxSetCurrent(d->context);
	if (r) return r;
	switch (f->op) {
	case op_cholesky: return RLX_SOLVE("cusolverDnXpotrf_bufferSize", cholesky_size, (handle, params, fill_lower, n, t, 0, m, t, device, host));
	case op_lu: return RLX_SOLVE("cusolverDnXgetrf_bufferSize", lu_size, (handle, params, m, n, t, 0, m, t, device, host));
	case op_householder: return RLX_SOLVE("cusolverDnXgeqrf_bufferSize", householder_size, (handle, params, m, n, t, 0, m, t, 0, t, device, host));
	}
	return RLX_SOLVE("cusolverDnXsyevd_bufferSize", eigen_size, (handle, params, with_vectors, fill_lower, n, t, 0, m, t, 0, t, device, host));
}

// factor_one enqueues the factorisation of one matrix.
static int factor_one(const rlx_solver *solver, rlx_handle handle, rlx_handle params, const rlx_factor *f, rlx_ptr matrix, rlx_ptr other,
                      rlx_ptr code, rlx_ptr workspace, const char **call) {
	const int64_t m = f->rows, n = f->columns;
	const int t = f->type;
	const size_t bytes = f->workspace, host = f->host_bytes;
	switch (f->op) {
	case op_cholesky: return RLX_SOLVE("cusolverDnXpotrf", cholesky, (handle, params, fill_lower, n, t, matrix, m, t, workspace, bytes, f->host, host, code));
	case op_lu: return RLX_SOLVE("cusolverDnXgetrf", lu, (handle, params, m, n, t, matrix, m, other, t, workspace, bytes, f->host, host, code));
	case op_householder: return RLX_SOLVE("cusolverDnXgeqrf", householder, (handle, params, m, n, t, matrix, m, t, other, t, workspace, bytes, f->host, host, code));
	}
	return RLX_SOLVE("cusolverDnXsyevd", eigen, (handle, params, with_vectors, fill_lower, n, t, matrix, m, t, other, t, workspace, bytes, f->host, host, code));
}

int rlx_factor_run(const rlx_solver *solver, rlx_device *d, rlx_handle handle, rlx_handle params, const rlx_factor *f, rlx_ptr matrices,
                   rlx_ptr others, rlx_ptr codes, rlx_ptr workspace, rlx_handle stream, const char **call) {
	const int64_t diagonal = f->rows < f->columns ? f->rows : f->columns;
	const int64_t other = diagonal * (f->op == op_lu ? (int64_t)sizeof(int64_t) : f->element);
	*call = "cuCtxSetCurrent";
	int r = d->cu->cuCtxSetCurrent(d->context);
	if (!r) r = RLX_SOLVE("cusolverDnSetStream", set_stream, (handle, stream));
	for (int i = 0; i < f->batch && !r; i++)
		r = factor_one(solver, handle, params, f, matrices + i * f->rows * f->columns * f->element, others + i * other, codes + i * sizeof(int32_t), workspace, call);
	return r;
}
