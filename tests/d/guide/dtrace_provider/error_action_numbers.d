/* arg2 counts the actions: the second one here.
   @@stderr: in action #2 */
int z;
BEGIN { trace("x"); trace(1 / z); }
BEGIN { exit(0); }
ERROR { printf("%d", arg2); }
/* @@output
2
*/
