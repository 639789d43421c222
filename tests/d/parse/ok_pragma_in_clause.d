BEGIN
{
#pragma D option quiet
	trace(1);
}
