/* Empty statements, and a body without any. */
BEGIN { ; ; }
BEGIN { ; trace("x"); ; exit(0); }
/* @@output
x
*/
