struct s {
	int; /* error: D_DECL_MNAME */
};
