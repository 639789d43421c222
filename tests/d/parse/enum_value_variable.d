enum e { A = pid }; /* error: D_DECL_ENCONST */
