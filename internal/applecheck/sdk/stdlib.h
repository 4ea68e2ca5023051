#include <stddef.h>
void *calloc(size_t, size_t);
void free(void *);
