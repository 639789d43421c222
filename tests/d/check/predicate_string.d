BEGIN
/execname/	/* error: D_PRED_SCALAR */
{
}
