struct s { int x[int]; }; /* error: D_DECL_DYNOBJ */
