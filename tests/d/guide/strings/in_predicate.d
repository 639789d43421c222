/* A string in a predicate: the guide's way to pick a program by its name. */
BEGIN /probename == "BEGIN"/ { trace("yes"); exit(0); }
BEGIN /probename == "begin"/ { trace("no"); }
/* @@output
yes
*/
