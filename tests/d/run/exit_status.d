/* @@exit: 7 */
BEGIN { printf("before\n"); exit(7); }
/* @@output
before
*/
