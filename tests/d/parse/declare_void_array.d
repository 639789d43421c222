void x[3]; /* error: D_DECL_VOIDOBJ */
