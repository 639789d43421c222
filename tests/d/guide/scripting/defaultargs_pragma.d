/* The same as a pragma.
   @@script-args: 7 */
#pragma D option defaultargs
BEGIN { printf("%d [%s]", $1, $$2); exit(0); }
/* @@output
7 []
*/
