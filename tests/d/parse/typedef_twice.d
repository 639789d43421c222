typedef int x;
typedef long x; /* error: D_DECL_IDRED */
