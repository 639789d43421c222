/* System calls by name: which of these two the program makes, and how often.
   @@blanks: any
   @@program: calls.py
   @@python: 3.9 */
syscall::getppid:entry,
syscall::getpgid:entry
/pid == $target/
{
	@[probefunc] = count();
}
/* @@output
getppid 2
*/
