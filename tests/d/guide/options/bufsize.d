/* -b sets bufsize; records of many sizes go through a small one.
   @@options: -q -b 4k */
BEGIN { trace("abc"); printf("%s %d", "x", 5); exit(0); }
/* @@output
abcx 5
*/
