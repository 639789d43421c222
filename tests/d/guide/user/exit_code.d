/* The program's end, as the system call shows it.
   @@program: exit.py
   @@python: 3.9 */
syscall::exit_group:entry
/pid == $target/
{
	printf("%d", (int)arg0);
}
/* @@output
7
*/
