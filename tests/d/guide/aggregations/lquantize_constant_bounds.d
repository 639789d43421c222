/* The bounds of lquantize() are constants.
   @@exit: 1
   @@options: -q -x errtags
   @@stderr: \[D_LQUANT_LIMTYPE\] */
BEGIN
{
	x = 5;
	@a = lquantize(1, 0, x, 1);
	exit(0);
}
