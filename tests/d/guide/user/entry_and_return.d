/* entry and return of a function; arg1 of return is its value: a process id.
   @@blanks: any
   @@program: calls.py
   @@python: 3.9 */
pid$target:libc:getppid:entry { self->in = 1; }
pid$target:libc:getppid:return /self->in && arg1 > 0/ { @ = count(); self->in = 0; }
/* @@output
2
*/
