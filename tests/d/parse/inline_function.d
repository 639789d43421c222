inline int x(int a) = a; /* error: D_DECL_COMBO */
