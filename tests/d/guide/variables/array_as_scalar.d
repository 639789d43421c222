/* An array is not read without its keys.
   @@exit: 1
   @@options: -q -x errtags
   @@stderr: \[D_\w+\] */
BEGIN
{
	a[1] = 2;
	trace(a);
	exit(0);
}
