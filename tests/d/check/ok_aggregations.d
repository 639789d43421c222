BEGIN
{
	@ = count();
	@a = sum(1);
	@b[pid, execname] = min(timestamp);
	@c = max(-1);
	@d = avg(arg0);
	@e = stddev(arg0);
	@f = quantize(arg0);
	@g = quantize(arg0, 2);
	@h = lquantize(arg0, 0, 100, 10);
	@i = lquantize(arg0, -10, 10);
	@j = llquantize(arg0, 10, 0, 6, 20);
	@k = lquantize(arg0, 0, 100, 10, 3);
}
