struct s {
	struct s a; /* error: D_DECL_INCOMPLETE */
};
