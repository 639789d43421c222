/* Variables of the kernel and of programs are not read: nothing is known by such a name. */
BEGIN
{
	trace(`jiffies);		/* error: D_IDENT_UNDEF */
	trace(vmlinux`nosuch);		/* error: D_IDENT_UNDEF */
	trace(sizeof(nosuch`nosuch));	/* error: D_IDENT_UNDEF */
}
