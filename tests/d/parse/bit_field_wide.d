struct s {
	int a : 33; /* error: D_DECL_BFSIZE */
};
