/* Powers of two, one empty bucket shown at each end, 40 columns for all: the form of the DTrace guide. */
BEGIN
{
	@ = quantize(1);
	@ = quantize(5);
	@ = quantize(6);
	@ = quantize(7);
	exit(0);
}
/* @@output
           value  ------------- Distribution ------------- count    
               0 |                                         0        
               1 |@@@@@@@@@@                               1        
               2 |                                         0        
               4 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@           3        
               8 |                                         0        
*/
