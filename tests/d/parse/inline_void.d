inline void x = 1; /* error: D_DECL_VOIDOBJ */
