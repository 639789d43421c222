struct s {
	int f(int); /* error: D_DECL_VOIDOBJ */
};
