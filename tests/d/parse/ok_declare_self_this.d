self int a;
this string b;
self char *c;
this long d, e;
self f;
/* @@then: no probes specified */
