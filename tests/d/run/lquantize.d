/* Steps of 10 from 0 to 30, with the buckets below and above: the form of the DTrace guide. */
BEGIN
{
	@ = lquantize(-5, 0, 30, 10);
	@ = lquantize(5, 0, 30, 10);
	@ = lquantize(15, 0, 30, 10);
	@ = lquantize(99, 0, 30, 10);
	exit(0);
}
/* @@output
           value  ------------- Distribution ------------- count    
             < 0 |@@@@@@@@@@                               1        
               0 |@@@@@@@@@@                               1        
              10 |@@@@@@@@@@                               1        
              20 |                                         0        
           >= 30 |@@@@@@@@@@                               1        
*/
