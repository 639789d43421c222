int x[void]; /* error: D_DECL_PROTO_TYPE */
