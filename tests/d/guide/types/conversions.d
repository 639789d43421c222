/* Values of small types are promoted to int; assignments cut. */
BEGIN
{
	this->c = (char)200;
	this->u = (unsigned char)200;
	printf("%d %d %d\n", this->c, this->u, this->u + 100);
	printf("%d %d\n", (short)0x12345, (unsigned short)-1);
	printf("%d %d\n", (int)0x1ffffffff, (long)(int)0xffffffff);
	exit(0);
}
/* @@output
-56 200 300
9029 65535
-1 -1
*/
