/* Which Python function makes a system call.
   @@blanks: any
   @@program: calls.py
   @@python: 3.9 */
self string who;
python$target:::function-entry { self->who = copyinstr(arg1); }
syscall::getppid:entry /pid == $target/ { @[self->who] = count(); }
/* @@output
inner 2
*/
