BEGIN
{
	trace(pyint(pyarg(0)));
	trace(pyint(pyarg("name")));
	trace(pyint(pylocal("name")));
	trace(pyint(pylocal(1)));	/* error: D_PROTO_ARG */
	trace(pyint(pyarg((int *)arg0)));	/* error: D_PROTO_ARG */
	trace(pyarg());			/* error: D_PROTO_LEN */
}
