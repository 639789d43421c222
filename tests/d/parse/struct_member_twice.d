struct s {
	int a;
	int a; /* error: D_UNKNOWN */
};
