provider p {
	probe x(int a) : (int a, int b); /* error: D_DECL_PROTO_FORM */
};
