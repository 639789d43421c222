struct *x; /* error: D_SYNTAX */
