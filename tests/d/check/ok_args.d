python123:::function-entry
{
	trace(stringof(args[0]));
	trace(args[2]);
	trace(copyinstr(args[1]));
	trace(strlen(args[0]));
	trace(*args[0]);
}
/* @@then: \[D_PDESC_ZERO\] */
