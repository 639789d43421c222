struct s {
	int a : 0; /* error: D_DECL_BFCONST */
};
