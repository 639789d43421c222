provider p {
	probe x();
	probe x(int); /* error: D_PROV_PRDUP */
};
