void x; /* error: D_DECL_VOIDOBJ */
