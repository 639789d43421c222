/* A child of the traced process, seen by progenyof().
   @@blanks: any
   @@program: fork.py
   @@python: 3.9 */
syscall::getppid:entry
/progenyof($target) && pid != $target/
{
	@["in a child"] = count();
}
/* @@output
in a child 1
*/
