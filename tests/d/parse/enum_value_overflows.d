enum e { A = 2147483647, B }; /* error: D_DECL_ENOFLOW */
