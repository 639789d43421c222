/* The number of keys is fixed.
   @@exit: 1
   @@options: -q -x errtags
   @@stderr: \[D_PROTO_LEN\] */
BEGIN
{
	a[1] = 2;
	trace(a[1, 2]);
	exit(0);
}
