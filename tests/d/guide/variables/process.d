/* pid, ppid and execname of the process that fired the probe: the traced program's.
   @@program: ppid.py
   @@python: 3.9 */
syscall::getppid:entry
/pid == $target/
{
	printf("%d %d %d", pid == $target, tid == $target, ppid != pid);
}
/* @@output
1 1 1
*/
