/* raise() sends the process a signal: here one that it counts.
   @@program: signals.py
   @@python: 3.9
   @@options: -q -w */
syscall::getppid:entry
/pid == $target/
{
	raise(10);
}
/* @@output
handled 3
*/
