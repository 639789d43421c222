/* Under -q nothing stands between the output of two clauses. */
BEGIN { printf("a"); }
BEGIN { printf("b"); trace("c"); trace(1); exit(0); }
/* @@output
abc1
*/
