struct s { int a`b; }; /* error: D_DECL_SCOPE */
