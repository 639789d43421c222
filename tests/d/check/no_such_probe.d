nosuch:::probe	/* error: D_PDESC_ZERO */
{
}
