/* Arguments of the script: $1 as a value, $$1 as a string.
   @@script-args: 41 word */
BEGIN { printf("%d %s %s", $1 + 1, $$1, $$2); exit(0); }
/* @@output
42 41 word
*/
