/* What happens only inside of a function: system calls while self->follow is set.
   @@blanks: any
   @@program: calls.py
   @@python: 3.9 */
python$target:::function-entry /copyinstr(arg1) == "outer"/ { self->follow = 1; }
syscall::getppid:entry /self->follow/ { @["inside"] = count(); }
syscall::getppid:entry /pid == $target && !self->follow/ { @["outside"] = count(); }
python$target:::function-return /copyinstr(arg1) == "outer"/ { self->follow = 0; }
/* @@output
inside 2
*/
