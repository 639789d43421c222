typedef int foo;
struct s { foo foo; };
/* @@then: no probes specified */
