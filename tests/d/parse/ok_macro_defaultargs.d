#pragma D option defaultargs
BEGIN { trace($1); trace($$2); printf("%s", $$3); }
pid$1:::entry { }
/* @@then: \[D_PDESC_ZERO\] */
