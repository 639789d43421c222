struct s {
	int : 40; /* error: D_DECL_BFSIZE */
	void a; /* error: D_DECL_VOIDOBJ */
	int b;
};
