/* The CPU's place, as variables and as members; Linux has no processor sets, and interrupts no levels. */
BEGIN
{
	printf("%d %d %d %d\n", chip == curcpu->cpu_chip, lgrp == curcpu->cpu_lgrp, pset, ipl);
	exit(cpu == curcpu->cpu_id ? 0 : 1);
}
/* @@output
1 1 0 0
*/
