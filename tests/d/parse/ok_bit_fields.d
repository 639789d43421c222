struct f { int a : 3; unsigned b : 5, : 2, c : 1; int : 0; uint64_t d : 40; };
/* @@then: no probes specified */
