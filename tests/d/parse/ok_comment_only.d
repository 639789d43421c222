/* nothing but this */
/* @@then: no probes specified */
