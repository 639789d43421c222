BEGIN
{
	this->a = 1;
	trace(this->a);
}
BEGIN
/this->a == 1/
{
	this->a = 2;
}
