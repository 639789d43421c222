struct s { int x; };
BEGIN { trace(p->probe); trace(p.string); trace(p->for); }
/* @@then: \[D_IDENT_UNDEF\] */
