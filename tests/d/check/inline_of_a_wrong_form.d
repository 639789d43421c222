inline int x[3] = 1;	/* error: D_DECL_ARRNULL */
inline static int y = 1;	/* error: D_DECL_BADCLASS */

BEGIN
{
	exit(0);
}
