/* The array of the guide's chapter on BEGIN: names of page protections by their bits. */
BEGIN
{
	prot[0] = "---";
	prot[1] = "r--";
	prot[2] = "-w-";
	prot[3] = "rw-";
	prot[4] = "--x";
	prot[5] = "r-x";
	prot[6] = "-wx";
	prot[7] = "rwx";
	i = 5;
	printf("%s %s %s", prot[3], prot[i], prot[15 & 7]);
	exit(0);
}
/* @@output
rw- r-x rwx
*/
