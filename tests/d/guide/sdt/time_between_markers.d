/* Time between two markers of one thread, summed by function: all that were entered have returned.
   @@blanks: any
   @@program: query.py
   @@python: 3.9 3.15 */
python$target:::function-entry /copyinstr(arg1) == "query"/ { self->t = timestamp; }
python$target:::function-return /self->t/ { @t["longer than nothing", timestamp > self->t] = count(); self->t = 0; }
/* @@output
longer than nothing 1 3
*/
