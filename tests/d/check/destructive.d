BEGIN
{
	system("ls");	/* error: D_DESTRUCTIVE */
	raise(9);	/* error: D_DESTRUCTIVE */
	stop();	/* error: D_DESTRUCTIVE */
	copyout(0, 0, 1);	/* error: D_DESTRUCTIVE */
	chill(1);	/* error: D_UNKNOWN */
	breakpoint();	/* error: D_UNKNOWN */
	panic();	/* error: D_UNKNOWN */
	setopt(execname, "1");	/* error: D_SETOPT_NAME */
	setopt("quiet", pid);	/* error: D_PROTO_ARG */
	freopen(1);	/* error: D_PRINTF_ARG_FMT */
	freopen(".");	/* error: D_FREOPEN_INVALID */
}
