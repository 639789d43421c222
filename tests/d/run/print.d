/* The members' values are those that Python's ctypes reads from the same bytes. */
enum color { RED, GREEN = 5 };
struct in { short s; char c; };
union u { int i; char b[4]; };
typedef struct foo {
	int a;
	unsigned int b:3, d:9, e:20;
	char name[8];
	uint64_t big;
	struct in inner;
	unsigned char v[3];
	void *p;
	union u u;
} foo_t;

python$target:::function-entry
/strlen(copyinstr(arg1)) == 48/
{
	this->f = (foo_t *)copyin(arg1, sizeof(foo_t));
	print(*this->f);
	printf("\n");
	print(((struct in *)copyin(arg1 + 24, 4))[0]);
	printf("\n");
	print(this->f->a);
	printf("\n");
	print((enum color)(this->f->a - this->f->a + 5));
	printf("\n");
	print((enum color)7);
	printf("\n");
	print(probename);
	printf("\n");
	print((short)-1);
	printf("\n");
	exit(0);
}
/* @@output
foo_t {
    int a = 0x64636261
    unsigned int b :3 = 0x5
    unsigned int d :9 = 0xcc
    unsigned int e :20 = 0x68676
    char [8] name = [ "ijklmnop" ]
    uint64_t big = 0x7877767574737271
    struct in inner = {
        short s = 0x7a79
        char c = 'A'
    }
    unsigned char [3] v = [ 0x43, 0x44, 0x45 ]
    void * p = 0x4e4d4c4b4a494847
    union u u = {
        int i = 0x5251504f
        char [4] b = [ "OPQR" ]
    }
}
struct in {
    short s = 0x7a79
    char c = 'A'
}
int 0x64636261
enum color GREEN
enum color 7
string "function-entry"
short 0xffff
*/
