long char x; /* error: D_DECL_CHARATTR */
