#ifndef RLX_MPI_H
#define RLX_MPI_H

#include <stddef.h>

// A handle is a pointer in Open MPI and in the ABI of MPI 5, and an int, the lower half of it, in MPICH.
typedef void *rlx_mpi_handle;

// rlx_mpi is a loaded library.
typedef struct rlx_mpi rlx_mpi;

// The binary interfaces of MPI.
enum { rlx_mpi_open, rlx_mpi_mpich, rlx_mpi_abi };

// rlx_mpi_load loads a library, or returns NULL and why.
rlx_mpi *rlx_mpi_load(const char *path, char *why, int why_bytes);

// The functions return a code of MPI, 0 for success.
int rlx_mpi_interface(const rlx_mpi *m);
int rlx_mpi_begin(const rlx_mpi *m, int *was_begun, int *rank, int *size);
int rlx_mpi_end(const rlx_mpi *m);
rlx_mpi_handle rlx_mpi_world(const rlx_mpi *m);
int rlx_mpi_split(const rlx_mpi *m, rlx_mpi_handle comm, int color, int key, rlx_mpi_handle *made);
int rlx_mpi_unit(const rlx_mpi *m, int bytes, rlx_mpi_handle *made);
int rlx_mpi_free_unit(const rlx_mpi *m, rlx_mpi_handle *made);
int rlx_mpi_test(const rlx_mpi *m, rlx_mpi_handle *request, int *done);
int rlx_mpi_cancel(const rlx_mpi *m, rlx_mpi_handle *request);
int rlx_mpi_send(const rlx_mpi *m, const void *at, int count, rlx_mpi_handle unit, int to, rlx_mpi_handle comm, rlx_mpi_handle *request);
int rlx_mpi_recv(const rlx_mpi *m, void *at, int count, rlx_mpi_handle unit, int from, rlx_mpi_handle comm, rlx_mpi_handle *request);
int rlx_mpi_broadcast(const rlx_mpi *m, void *at, int count, rlx_mpi_handle unit, int root, rlx_mpi_handle comm, rlx_mpi_handle *request);
int rlx_mpi_gather(const rlx_mpi *m, const void *from, int count, void *to, const int *counts, const int *at, rlx_mpi_handle unit,
                   rlx_mpi_handle comm, rlx_mpi_handle *request);
int rlx_mpi_exchange(const rlx_mpi *m, const void *from, const int *send_counts, const int *send_at, void *to, const int *counts, const int *at,
                     rlx_mpi_handle unit, rlx_mpi_handle comm, rlx_mpi_handle *request);
void rlx_mpi_text(const rlx_mpi *m, int code, char *text); // of 512 bytes

#endif
