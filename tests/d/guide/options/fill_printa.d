/* Aggregations are printed at the end, too, with the values they have then. */
#pragma D option bufpolicy=fill
BEGIN { @ = count(); printa("%@d\n", @); @ = count(); exit(0); }
/* @@output
2
*/
