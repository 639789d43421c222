BEGIN, END, ERROR, tick-1s, profile-97, python123:::function-*
{
}
/* @@then: \[D_PDESC_ZERO\] */
