enum e { A = 2147483648 }; /* error: D_DECL_ENOFLOW */
