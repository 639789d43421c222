/* progenyof(): is the process a descendant of that one?
   @@program: write.py
   @@python: 3.9 */
syscall::write:entry
/pid == $target && arg2 == 14/
{
	printf("%d %d %d", progenyof(pid), progenyof(1), progenyof($pid));
}
/* @@output
1 1 1
*/
