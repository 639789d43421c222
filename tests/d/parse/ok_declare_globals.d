int a;
long long b, *c, d[3];
unsigned e;
string f;
char g[10][20];
const char *h;
/* @@then: no probes specified */
