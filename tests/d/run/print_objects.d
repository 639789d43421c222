/* print() of variables that hold structures. */
struct in { short s; char t[5]; };
struct out { string n; struct in i[2]; unsigned char b; unsigned few:2; };
self struct out v;
BEGIN
{
	self->v.n = "x\"y";
	self->v.i[1].s = -1;
	self->v.i[1].t[0] = 'a';
	self->v.few = 3;
	print(self->v);
	printf("\n");
	print(self->v.i);
	printf("\n");
	this->one = self->v.i[1];
	print(this->one);
	exit(0);
}
/* @@output
struct out {
    string n = "x\"y"
    struct in [2] i = [ {
        short s = 0x0
        char [5] t = [ "" ]
    }, {
        short s = 0xffff
        char [5] t = [ "a" ]
    } ]
    unsigned char b = 0x0
    unsigned int few :2 = 0x3
}
struct in [2] [ {
    short s = 0x0
    char [5] t = [ "" ]
}, {
    short s = 0xffff
    char [5] t = [ "a" ]
} ]
struct in {
    short s = 0xffff
    char [5] t = [ "a" ]
}
*/
