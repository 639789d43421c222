python123:::function-entry,
python123:::function-return
{
	trace(args[2]);
}
