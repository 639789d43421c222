/* gc-start and gc-done: the generation, and how many objects were collected.
   @@program: query.py
   @@python: 3.9 */
python$target:::gc-start { self->in = 1; printf("start %d\n", arg0); }
python$target:::gc-done /self->in && arg0 >= 0/ { printf("done\n"); self->in = 0; exit(0); }
/* @@output
start 0
done
*/
