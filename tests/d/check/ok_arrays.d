BEGIN
{
	a[1, "x"] = 2;
	a[pid, execname]++;
	trace(a[2, "y"]);
	a[1, "x"] = 0;
	self->b[tid] = 1;
	trace(self->b[1]);
}
