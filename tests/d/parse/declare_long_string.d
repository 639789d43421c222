long string x; /* error: D_DECL_LONGINT */
