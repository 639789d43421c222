/* @@script-args: 42 word
 * $n is the argument as it stands, $$n as a string.
 */
BEGIN { printf("%d %s %s %d\n", $1, $$1, $$2, $1 + 1); exit(0); }
/* @@output
42 42 word 43
*/
