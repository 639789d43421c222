/* And one number of keys.
   @@exit: 1
   @@options: -q -x errtags
   @@stderr: \[D_PROTO_LEN\] */
BEGIN
{
	@a[1] = count();
	@a[1, 2] = count();
	exit(0);
}
