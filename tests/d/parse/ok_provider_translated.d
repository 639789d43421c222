provider p { probe x(int a, char *b) : (char *b, int a); probe y(struct s *q) : (struct s *q); };
/* @@then: no probes specified */
