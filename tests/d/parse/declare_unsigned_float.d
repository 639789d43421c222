unsigned float x; /* error: D_DECL_SIGNINT */
