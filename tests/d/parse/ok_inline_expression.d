inline int big = pid > 1000 ? 1 : 0;
/* @@then: no probes specified */
