/* @@options: -q -x aggsortkey
 * Thread-local variables: each thread has its depth, and the calls of four threads do not mix.
 */
python$target:::function-entry
/copyinstr(arg1) == "nest"/
{
	self->depth++;
	@deepest[self->depth] = count();
}
python$target:::function-return
/copyinstr(arg1) == "nest"/
{
	self->depth--;
}
END { printa("%d %@d\n", @deepest); trunc(@deepest); }
/* @@output
1 200
2 200
3 200
*/
