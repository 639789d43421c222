/* A width is a number of columns (DTrace guide, "Width and Precision Specifiers"): of characters, whatever their bytes. */
BEGIN
{
	this->s = "größe";
	printf("%8s|%-8s|%3s|%-2s|\n", this->s, "größe", "λ", "數");
	printf("%4s|%-3s|\n", "🐍", "é");
	printf("%6s|%-6s|\n", "plain", "plain");
	exit(0);
}
/* @@output
   größe|größe   |  λ|數 |
   🐍|é  |
 plain|plain |
*/
