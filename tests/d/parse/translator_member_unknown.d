struct s { int a; };
translator struct s < int x > {
	b = x; /* error: D_XLATE_MEMB */
};
