int f(void x); /* error: D_DECL_PROTO_NAME */
