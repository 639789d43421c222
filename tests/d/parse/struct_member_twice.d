struct s {
	int a;
	int a; /* error: D_DECL_IDRED */
};
