struct s { int a; };
struct s { int b; }; /* error: D_DECL_TYPERED */
