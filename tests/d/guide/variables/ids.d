/* id and epid number the probe and the clause. */
BEGIN { printf("%d %d ", id, epid); }
BEGIN { printf("%d %d ", id, epid); exit(0); }
END { printf("%d %d", id, epid); }
/* @@output
1 1 1 2 2 3
*/
