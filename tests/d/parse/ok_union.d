union u { int a; char b[8]; };
union u x;
/* @@then: no probes specified */
