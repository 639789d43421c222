/* @@blanks: any
 * An aggregation without keys that was used is shown when what it has is zero; one that was not is not shown.
 * Guide: "Aggregations".
 */
BEGIN
{
	@none = sum(1);
	@zero = sum(0);
	@back = sum(5);
	@back = sum(-5);
	@log = quantize(4, 1);
	@log = quantize(4, -1);
	@line = lquantize(1, 0, 3, 1, 0);
	exit(0);
}
BEGIN
/0/
{
	@unused = sum(1);
	@unused_line = lquantize(1, 0, 3, 1);
}
END
{
	printa("none %@d\n", @none);
	printa("zero %@d\n", @zero);
	printa("back %@d\n", @back);
	printa("log%@d", @log);
	printa("line%@d", @line);
	printa("unused %@d\n", @unused);
	printa("unused line%@d", @unused_line);
	clear(@none);
	clear(@zero);
	clear(@back);
	trunc(@none);
	trunc(@zero);
	trunc(@back);
	trunc(@log);
	trunc(@line);
}
/* @@output
none 1
zero 0
back 0
log
           value  ------------- Distribution ------------- count    
              -1 |                                         0        
               0 |                                         0        
               1 |                                         0        
line
           value  ------------- Distribution ------------- count    
             < 0 |                                         0        
               0 |                                         0        
               1 |                                         0        
*/
