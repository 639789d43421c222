struct src { int a; };
struct dst { int b; };
translator struct dst < struct src s > {	/* error: D_UNKNOWN */
	b = s.a;
};
BEGIN { }
