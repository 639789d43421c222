int n;
int x[n]; /* error: D_DECL_ARRSUB */
