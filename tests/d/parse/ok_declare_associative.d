int a[int];
string b[int, string, char *];
self int c[uint64_t];
char *d[struct s *];
/* @@then: no probes specified */
