/* execname: the file that the process runs.
   @@program: calls.py
   @@python: 3.9 */
syscall::getppid:entry
/pid == $target/
{
	printf("%d\n", execname == "python3.9" || execname == "python3");
}
/* @@output
1
1
*/
