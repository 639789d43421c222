/* An address that cannot be read is told with its number.
   @@stderr: invalid address \(0x123456\) at BPF pc */
BEGIN { trace(*(int *)0x123456); }
BEGIN { exit(0); }
/* @@output

*/
