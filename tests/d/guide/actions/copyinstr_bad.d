/* An address that the process does not have: told, and the clause ends.
   @@program: write.py
   @@python: 3.9
   @@stderr: invalid address \(0x10\) at BPF pc */
syscall::write:entry
/pid == $target && arg2 == 14/
{
	printf("before\n");
	trace(copyinstr(0x10));
}
syscall::write:entry
/pid == $target && arg2 == 14/
{
	printf("next");
}
/* @@output
next
*/
