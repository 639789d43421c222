BEGIN
{
	stack(1, 2);	/* error: D_PROTO_LEN */
	stack(0);	/* error: D_STACK_SIZE */
	stack(x);	/* error: D_IDENT_UNDEF */
	ustack(-1);	/* error: D_USTACK_FRAMES */
	ustack(1, -1);	/* error: D_USTACK_STRSIZE */
	pystack(1, 2);	/* error: D_PROTO_ARG */
	pystack(1, "lines");	/* error: D_PYSTACK_DETAIL */
	pystack(1, "line async");	/* error: D_PYSTACK_DETAIL */
	ustack(1, 2, 3);	/* error: D_PROTO_LEN */
	y = usym(1);	/* error: D_CG_EXPR */
	z[usym(1)] = 1;	/* error: D_CG_EXPR */
	trace(func(1));	/* error: D_CG_EXPR */
	uaddr();	/* error: D_PROTO_LEN */
	@[execname] = count();
	printa("%k %@d\n", @);	/* error: D_PRINTF_ARG_TYPE */
}
