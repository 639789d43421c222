/* argref: arguments need not be used.
   @@script-args: 1 2 3 */
#pragma D option argref
BEGIN { trace($1); exit(0); }
/* @@output
1
*/
