extern int a;
extern struct unknown b;
extern char c[];
/* @@then: no probes specified */
