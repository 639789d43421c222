struct s { struct s { int b; } a; }; /* error: D_DECL_TYPERED */
