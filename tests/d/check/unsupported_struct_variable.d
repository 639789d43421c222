struct point { int x, y; };
struct point p;	/* error: D_UNKNOWN */
BEGIN { }
