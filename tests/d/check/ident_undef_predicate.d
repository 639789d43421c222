BEGIN
/nosuch == 1/	/* error: D_IDENT_UNDEF */
{
}
