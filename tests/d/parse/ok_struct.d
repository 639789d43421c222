struct s { int a; char b[4]; struct s *next; struct { int c; } d; };
struct s x;
/* @@then: no probes specified */
