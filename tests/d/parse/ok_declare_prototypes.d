extern int f(int, char *);
int g(void);
void h();
int i(const char *, ...);
extern void *j(int a, int (*cb)(int));
/* @@then: no probes specified */
