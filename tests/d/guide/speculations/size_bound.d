/* Records beyond specsize are dropped and counted.
   @@options: -q -x specsize=64
   @@stderr: ^dtrace: 1 speculative drop
$ */
BEGIN { s = speculation(); }
BEGIN { speculate(s); printf("%s", "a long text that takes some room in the buffer, more than there is of it"); }
BEGIN { commit(s); }
BEGIN { printf("rest"); exit(0); }
/* @@output
rest
*/
