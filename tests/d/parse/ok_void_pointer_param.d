provider p { probe x(void *, const void *const); };
/* @@then: no probes specified */
