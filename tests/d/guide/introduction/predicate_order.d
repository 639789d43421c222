/* Clauses of one probe run in the order of the script, and see what those before them did. */
BEGIN { i = 1; }
BEGIN /i == 1/ { trace("one "); i = 2; }
BEGIN /i == 1/ { trace("never "); }
BEGIN /i == 2/ { trace("two"); exit(0); }
/* @@output
one two
*/
