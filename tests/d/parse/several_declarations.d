void x; /* error: D_DECL_VOIDOBJ */
int y = 1; /* error: D_SYNTAX */
static int z; /* error: D_DECL_BADCLASS */
BEGIN { x = 1 ; }
