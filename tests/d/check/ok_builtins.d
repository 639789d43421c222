BEGIN
{
	trace(timestamp);
	trace(vtimestamp);
	trace(walltimestamp);
	trace(pid + tid + ppid);
	trace(uid + gid);
	trace(execname);
	trace(cpu);
	trace(epid + id);
	trace(probeprov);
	trace(probemod);
	trace(probefunc);
	trace(probename);
	trace(arg0 + arg9);
}
