struct s {
	char *a : 3; /* error: D_DECL_BFTYPE */
};
