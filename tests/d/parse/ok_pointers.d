char *p;
BEGIN { trace(*p); trace(p[2]); trace(*(p + 1)); trace(&p == 0); }
/* @@then: \[D_ADDROF_VAR\] */
