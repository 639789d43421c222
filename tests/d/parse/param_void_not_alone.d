int f(int, void); /* error: D_DECL_PROTO_VOID */
