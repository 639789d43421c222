/* copyout() is refused: nothing is written into the traced process.
   @@options: -q -w
   @@exit: 1
   @@stderr: copyout */
BEGIN
{
	copyout((void *)0, 0, 0);
	exit(0);
}
