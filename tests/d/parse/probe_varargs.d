provider p {
	probe x(int, ...); /* error: D_DECL_PROTO_VARARGS */
};
