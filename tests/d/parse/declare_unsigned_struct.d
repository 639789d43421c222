unsigned struct s *x; /* error: D_DECL_SIGNINT */
