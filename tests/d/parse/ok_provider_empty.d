provider p { };
/* @@then: no probes specified */
