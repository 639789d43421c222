/* defaultargs: it is 0, or an empty string.
   @@options: -q -x defaultargs */
BEGIN { printf("%d [%s]", $1, $$2); exit(0); }
/* @@output
0 []
*/
