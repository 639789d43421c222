BEGIN
{
	trace(uregs[R_PC, R_SP]);	/* error: D_PROTO_LEN */
	trace(uregs[1, 2, 3]);		/* error: D_PROTO_LEN */
	trace(uregs[-1]);		/* error: D_REGS_IDX */
	trace(uregs[1000]);		/* error: D_UNKNOWN */
	trace(uregs["R_PC"]);		/* error: D_PROTO_ARG */
	trace(args[0, 1]);		/* error: D_PROTO_LEN */
}
