/* $1 is put in as it stands: also a name or a string in quotes.
   @@script-args: x '"text"' */
BEGIN { x = 5; printf("%d %s", $1, $2); exit(0); }
/* @@output
5 text
*/
