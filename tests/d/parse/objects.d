struct fn { int (*call)(int); };
struct nosuch n;			/* error: D_DECL_INCOMPLETE */
struct hasfn { int f(int); };		/* error: D_DECL_VOIDOBJ */
