inline int N = 10;
inline string S = "x";
inline long M = N + 1;
/* @@then: no probes specified */
