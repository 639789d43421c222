enum e { A = -1, B, MIN = -2147483647 - 1, MAX = 2147483647 };
/* @@then: no probes specified */
