typedef struct info { int a; string name; } info_t;
/* @@then: no probes specified */
