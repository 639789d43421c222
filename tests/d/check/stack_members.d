BEGIN
{
	this->s = ustack(3);
	trace(this->s.depth);	/* error: D_UNKNOWN */
	trace(ustack(3).frames);	/* error: D_TYPE_MEMBER */
}
