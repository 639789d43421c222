/* errno of a system call's return: ENOENT.
   @@program: mkdir.py
   @@python: 3.9 */
syscall::mkdir*:return
/pid == $target/
{
	printf("%d %d", errno, (int)arg0);
}
/* @@output
2 -1
*/
