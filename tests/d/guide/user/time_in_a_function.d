/* How long a call takes: more than nothing and less than a minute.
   @@blanks: any
   @@program: calls.py
   @@python: 3.9 */
pid$target:libc:getppid:entry { self->t = timestamp; }
pid$target:libc:getppid:return /self->t/ { @[timestamp > self->t, timestamp - self->t < 60000000000] = count(); self->t = 0; }
/* @@output
1 1 2
*/
