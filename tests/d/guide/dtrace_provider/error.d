/* ERROR fires for a fault; arg1 is the clause, arg2 the action, arg4 the kind of fault, arg5 its value.
   @@stderr: error on enabled probe ID 1 \(ID 1: dtrace:::BEGIN\): invalid address \(0x18\) in action #1 */
BEGIN { *(char *)0x18; }
BEGIN { exit(0); }
ERROR { printf("%d %d %d %x", arg1, arg2, arg4, arg5); }
/* @@output
1 1 1 18
*/
