python123:::function-entry,
python123:::function-return
{
	trace(args[2]);
}
/* @@then: \[D_PDESC_ZERO\] */
