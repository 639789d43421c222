/* What stands on the command line wins over the pragma.
   @@options: -q -x strsize=32 */
#pragma D option strsize=8
BEGIN { s = "abcdefghij"; trace(s); exit(0); }
/* @@output
abcdefghij
*/
