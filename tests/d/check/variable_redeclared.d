int a;
string a;	/* error: D_DECL_IDRED */
BEGIN { }
