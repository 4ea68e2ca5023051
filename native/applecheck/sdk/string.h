#include <stddef.h>
void *memset(void *, int, size_t);
char *strstr(const char *, const char *);
