typedef unsigned short port_t;
port_t p;
BEGIN
{
	p = 70000;
	trace(p);
}
