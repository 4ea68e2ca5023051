//go:build linux && (amd64 || arm64)

#include "mpi_linux.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef rlx_mpi_handle handle;

// RLX_MPI_FUNCTIONS lists the functions of MPI that are used: name and parameters.
#define RLX_MPI_FUNCTIONS(f) \
	f(MPI_Initialized, (int *)) \
	f(MPI_Init_thread, (int *, char ***, int, int *)) \
	f(MPI_Finalize, (void)) \
	f(MPI_Comm_rank, (handle, int *)) \
	f(MPI_Comm_size, (handle, int *)) \
	f(MPI_Comm_split, (handle, int, int, handle *)) \
	f(MPI_Comm_set_errhandler, (handle, handle)) \
	f(MPI_Type_contiguous, (int, handle, handle *)) \
	f(MPI_Type_commit, (handle *)) \
	f(MPI_Type_free, (handle *)) \
	f(MPI_Test, (handle *, int *, void *)) \
	f(MPI_Cancel, (handle *)) \
	f(MPI_Request_free, (handle *)) \
	f(MPI_Isend, (const void *, int, handle, int, int, handle, handle *)) \
	f(MPI_Irecv, (void *, int, handle, int, int, handle, handle *)) \
	f(MPI_Ibcast, (void *, int, handle, int, handle, handle *)) \
	f(MPI_Iallgatherv, (const void *, int, handle, void *, const int *, const int *, handle, handle, handle *)) \
	f(MPI_Ialltoallv, (const void *, const int *, const int *, handle, void *, const int *, const int *, handle, handle, handle *)) \
	f(MPI_Error_string, (int, char *, int *))

struct rlx_mpi {
#define field(name, parameters) int (*name) parameters;
	RLX_MPI_FUNCTIONS(field)
#undef field
	int interface;
	handle world, byte, errors_return;
};

static handle constant(uintptr_t x) { return (handle)x; }

rlx_mpi *rlx_mpi_load(const char *path, char *why, int why_bytes) {
	// Open MPI's own plugins need its symbols.
	void *lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	if (!lib) {
		snprintf(why, why_bytes, "%s", dlerror());
		return NULL;
	}
	rlx_mpi *m = calloc(1, sizeof *m);
	const char *missing = m ? NULL : "memory";
#define find(name, parameters) \
	if (!missing && !(*(void **)&m->name = dlsym(lib, #name))) missing = #name;
	RLX_MPI_FUNCTIONS(find)
#undef find
	if (missing) {
		snprintf(why, why_bytes, "%s lacks %s", path, missing);
		free(m);
		return NULL;
	}
	const char *base = strrchr(path, '/');
	if ((m->world = dlsym(lib, "ompi_mpi_comm_world"))) {
		m->interface = rlx_mpi_open;
		m->byte = dlsym(lib, "ompi_mpi_byte");
		m->errors_return = dlsym(lib, "ompi_mpi_errors_return");
	} else if (strncmp(base ? base + 1 : path, "libmpi_abi.", 11) == 0) { // MPI 5.0, appendix A
		m->interface = rlx_mpi_abi;
		m->world = constant(0x101), m->byte = constant(0x247), m->errors_return = constant(0x143);
	} else { // mpi.h of MPICH and those that are compatible with it
		m->interface = rlx_mpi_mpich;
		m->world = constant(0x44000000), m->byte = constant(0x4c00010d), m->errors_return = constant(0x54000001);
	}
	return m;
}

int rlx_mpi_interface(const rlx_mpi *m) { return m->interface; }

handle rlx_mpi_world(const rlx_mpi *m) { return m->world; }

int rlx_mpi_begin(const rlx_mpi *m, int *was_begun, int *rank, int *size) {
	int r = m->MPI_Initialized(was_begun), got, funneled = m->interface == rlx_mpi_abi ? 1024 : 1; // MPI_THREAD_FUNNELED
	if (!r && !*was_begun) r = m->MPI_Init_thread(NULL, NULL, funneled, &got);
	if (!r) r = m->MPI_Comm_set_errhandler(m->world, m->errors_return);
	if (!r) r = m->MPI_Comm_rank(m->world, rank);
	return r ? r : m->MPI_Comm_size(m->world, size);
}

int rlx_mpi_end(const rlx_mpi *m) { return m->MPI_Finalize(); }

int rlx_mpi_split(const rlx_mpi *m, handle comm, int color, int key, handle *made) {
	int r = m->MPI_Comm_split(comm, color, key, made);
	return r ? r : m->MPI_Comm_set_errhandler(*made, m->errors_return);
}

int rlx_mpi_unit(const rlx_mpi *m, int bytes, handle *made) {
	int r = m->MPI_Type_contiguous(bytes, m->byte, made);
	return r ? r : m->MPI_Type_commit(made);
}

int rlx_mpi_free_unit(const rlx_mpi *m, handle *made) { return m->MPI_Type_free(made); }

int rlx_mpi_test(const rlx_mpi *m, handle *request, int *done) {
	long status[8]; // an MPI_Status has 20 to 32 bytes
	return m->MPI_Test(request, done, status);
}

int rlx_mpi_cancel(const rlx_mpi *m, handle *request) {
	int r = m->MPI_Cancel(request);
	return r ? r : m->MPI_Request_free(request);
}

enum { tag = 7 };

int rlx_mpi_send(const rlx_mpi *m, const void *at, int count, handle unit, int to, handle comm, handle *request) {
	return m->MPI_Isend(at, count, unit, to, tag, comm, request);
}

int rlx_mpi_recv(const rlx_mpi *m, void *at, int count, handle unit, int from, handle comm, handle *request) {
	return m->MPI_Irecv(at, count, unit, from, tag, comm, request);
}

int rlx_mpi_broadcast(const rlx_mpi *m, void *at, int count, handle unit, int root, handle comm, handle *request) {
	return m->MPI_Ibcast(at, count, unit, root, comm, request);
}

int rlx_mpi_gather(const rlx_mpi *m, const void *from, int count, void *to, const int *counts, const int *at, handle unit, handle comm, handle *request) {
	return m->MPI_Iallgatherv(from, count, unit, to, counts, at, unit, comm, request);
}

int rlx_mpi_exchange(const rlx_mpi *m, const void *from, const int *send_counts, const int *send_at, void *to, const int *counts, const int *at,
                     handle unit, handle comm, handle *request) {
	return m->MPI_Ialltoallv(from, send_counts, send_at, unit, to, counts, at, unit, comm, request);
}

void rlx_mpi_text(const rlx_mpi *m, int code, char *text) {
	int bytes = 0;
	if (m->MPI_Error_string(code, text, &bytes)) text[0] = 0;
}
