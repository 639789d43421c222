/* copyinstr() with a size takes one byte less, for the zero.
   @@program: write.py
   @@python: 3.9 */
syscall::write:entry
/pid == $target && arg2 == 14/
{
	printf("[%s] [%s] %d", copyinstr(arg1, 6), copyinstr(arg1), strlen(copyinstr(arg1)));
}
/* @@output
[hello] [hello, world!] 13
*/
