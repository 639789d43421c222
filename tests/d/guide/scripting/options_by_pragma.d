/* Options with values as pragmas.
   @@options: */
#pragma D option quiet
#pragma D option strsize=8
BEGIN { s = "abcdefghij"; trace(s); exit(0); }
/* @@output
abcdefg
*/
