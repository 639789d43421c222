enum e { A = 1 / 0 }; /* error: D_DECL_ENCONST */
