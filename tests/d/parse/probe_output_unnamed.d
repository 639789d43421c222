provider p {
	probe x(int a) : (int); /* error: D_DECL_PROTO_NAME */
};
