inline int x[int] = 1; /* error: D_DECL_PROTO_NAME */
