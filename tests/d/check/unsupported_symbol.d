BEGIN
{
	trace(`jiffies);	/* error: D_UNKNOWN */
}
