/* strtok(): token by token; NULL goes on with what is left. */
BEGIN
{
	this->f = strtok("/etc/some/conf", "/");
	printf("%s", this->f);
	this->f = strtok(NULL, "/");
	printf(" %s", this->f);
	this->f = strtok(NULL, "/");
	printf(" %s", this->f);
	printf(" %d", strtok(NULL, "/") == NULL);
	exit(0);
}
/* @@output
etc some conf 1
*/
