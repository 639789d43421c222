/* Patterns in descriptions: *, ? and []. */
dtrace:::B* { n++; }
dtrace:::?EGI? { n++; }
dtrace:::[A-C]EGIN { n++; }
d*:::BEGI[!A-M] { n++; }
dtrace:::*G* { n++; }
dtrace:::[!B]* { m++; }
BEGIN { printf("%d ", n); exit(0); }
END { printf("%d", m); }
/* @@output
5 1
*/
