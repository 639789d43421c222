/* A variable that nobody has assigned before cannot be read.
   @@exit: 1
   @@options: -q -x errtags
   @@stderr: \[D_IDENT_UNDEF\] */
BEGIN
{
	trace(nosuch);
	exit(0);
}
