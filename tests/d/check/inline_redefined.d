inline int N = 1;
inline int N = 2;	/* error: D_DECL_IDRED */
BEGIN { }
