/* tracemem() of what a process writes.
   @@program: write.py
   @@python: 3.9
   @@blanks: any */
syscall::write:entry
/pid == $target && arg2 == 14/
{
	tracemem(copyin(arg1, 14), 14);
}
/* @@output
  0 1 2 3 4 5 6 7 8 9 a b c d e f 0123456789abcdef
0: 68 65 6c 6c 6f 2c 20 77 6f 72 6c 64 21 00 hello, world!.
*/
