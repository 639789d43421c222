struct s {
	void a; /* error: D_DECL_VOIDOBJ */
};
