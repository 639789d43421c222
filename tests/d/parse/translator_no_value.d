struct s { int a; };
translator struct s < int x > {
	a; /* error: D_SYNTAX */
};
