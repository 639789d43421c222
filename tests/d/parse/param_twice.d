int f(int a, int a); /* error: D_DECL_PROTO_FORM */
