/* Comments are C's, and can stand anywhere between words; // is no comment of the guide's D. */
/* before */ BEGIN /* behind the description */
/ /* in the predicate */ 1 /* still */ /
{
	/* trace("no"); */
	trace(/* in a call */ "yes");	/* behind */
	exit(0) /* before the semicolon */ ;
}
/* at the end */
/* @@output
yes
*/
