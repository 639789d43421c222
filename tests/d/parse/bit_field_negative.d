struct s {
	int a : -1; /* error: D_DECL_BFCONST */
};
