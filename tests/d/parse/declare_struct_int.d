struct s { int a; } int x; /* error: D_DECL_COMBO */
