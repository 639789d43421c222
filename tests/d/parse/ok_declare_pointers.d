int *a, **b, *c[3], (*d)[3], (*e)(int, char *), *(*f[2])(void);
char *const g;
volatile int *restrict h;
uint64_t*i;
int*j;
/* @@then: no probes specified */
