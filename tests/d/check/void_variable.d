void v;	/* error: D_DECL_VOIDOBJ */
BEGIN { }
