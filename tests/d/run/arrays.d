/* Arrays of C as variables: by constant and by computed index; what is out of their bounds is a fault. */
int arr[10];
this char text[6];
self uint64_t grid[3][4];
struct { short s; char t[3]; } rows[5];
string names[4];
uint8_t many[100000];
int per[string][3];

BEGIN
{
	this->i = 2;
	arr[this->i] = 5;
	arr[9] = 7;
	arr[this->i + 7]++;
	arr[0] -= 3;
	printf("%d %d %d %d\n", arr[2], arr[9], arr[0], arr[1]);
	this->text[0] = 'h';
	this->text[1] = 'i';
	this->text[this->i] = '!';
	printf("%s %d %d\n", this->text, sizeof (this->text), strlen(this->text));
	self->grid[1][this->i] = 12;
	self->grid[2][0] = 20;
	printf("%d %d %d %d\n", self->grid[1][2], self->grid[this->i][0], self->grid[this->i][1], sizeof (self->grid));
	rows[this->i].t[1] = 'x';
	rows[this->i].s = -9;
	rows[4] = rows[this->i];
	rows[this->i].s = 1;
	printf("%d %d %c %d\n", rows[4].s, rows[2].s, rows[this->i + 2].t[1], rows[3].s);
	names[this->i] = "two";
	names[3] = names[2];
	printf("[%s] [%s]\n", names[this->i + 1], names[0]);
	many[99999] = 200;
	many[this->i] = many[99999] + 100;
	printf("%d %d\n", many[99999], many[2]);
	per["a"][1] = 4;
	per["b"][this->i] = 5;
	printf("%d %d %d\n", per["a"][this->i - 1], per["b"][2], per["c"][0]);
	printf("%d %d\n", sizeof (arr) / sizeof (arr[0]), sizeof (rows));
}
BEGIN
{
	printf("%s\n", this->text);
	arr[this->i * 5] = 1;
	printf("not reached\n");
}
ERROR
{
	printf("fault %d at %d\n", arg4, arg5);
	exit(0);
}
/* @@output
5 8 -3 0
hi! 6 3
12 20 0 96
-9 1 x 0
[two] []
200 44
4 5 0
10 30
fault 11 at 10
*/
/* @@stderr: index out of bounds \(10\) */
