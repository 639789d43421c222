struct s {
	int a : x; /* error: D_DECL_BFCONST */
};
