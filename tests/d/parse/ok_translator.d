struct in { int a; };
typedef struct out { int x; string y; } out_t;
translator out_t < struct in *p > { x = p->a; y = "y"; };
translator struct out < int n > { x = n; };
/* @@then: no probes specified */
