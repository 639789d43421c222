/* The last statement needs no semicolon. */
BEGIN { trace("x"); exit(0) }
/* @@output
x
*/
