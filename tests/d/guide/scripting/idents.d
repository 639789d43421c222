/* #ident and #error. */
#ident "@(#)x.d 1.0"
BEGIN { trace("ok"); exit(0); }
/* @@output
ok
*/
