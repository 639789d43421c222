struct s { int a; };
BEGIN { trace(sizeof (int)); trace(sizeof (struct s)); trace(sizeof x + 1); trace(sizeof (x)); trace(sizeof (char *)); }
/* @@then: \[D_IDENT_UNDEF\] */
