enum color { RED, GREEN = 5, BLUE };
BEGIN
/arg0 == GREEN/
{
	trace(BLUE);
	x = (enum color)arg1;
	trace(x == RED);
}
