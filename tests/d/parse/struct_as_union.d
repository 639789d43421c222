struct s { int a; };
union s *x; /* error: D_DECL_TYPERED */
