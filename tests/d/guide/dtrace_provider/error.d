/* ERROR fires for a fault; arg1 is the probe, arg2 the clause from 0 on, arg4 the kind of fault, arg5 its value.
   @@stderr: error in dt_clause_0 for probe ID 1 \(dtrace:::BEGIN\): invalid address \(0x18\) at BPF pc */
BEGIN { *(char *)0x18; }
BEGIN { exit(0); }
ERROR { printf("%d %d %d %x", arg1, arg2, arg4, arg5); }
/* @@output
1 0 1 18
*/
