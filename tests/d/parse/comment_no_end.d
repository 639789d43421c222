BEGIN { }
/* error: D_SYNTAX */ /* never ends

