/* Every kind of C type, declared here or by D itself; names, output arguments, translators, dashes. */
#pragma D attributes Stable/Evolving/ISA provider every_type args

typedef unsigned long id_number;
enum colour { RED, GREEN = 5, BLUE };
struct point { int x; int y; };
union word { int i; char c[4]; };
struct later;

typedef struct view { uintptr_t address; int x; } view_t;

translator view_t < struct point *p > {
	address = (uintptr_t)p;
	x = p->x;
};

provider every_type {
	probe none();
	probe void__list(void);
	probe integers(char, signed char, unsigned char, short, unsigned short, int, unsigned int, long,
	    unsigned long, long long, unsigned long long, int8_t);
	probe fixed(int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t, size_t, ssize_t,
	    uintptr_t, pid_t);
	probe floats(float, double);
	probe names(id_number id, enum colour c, struct point *p, union word *w, struct later *l);
	probe values(struct point p, union word w);
	probe pointers(const char *const *argv, int (*callback)(int, const char *), void **slot, volatile int *flag);
	probe arrays(int table[4], char text[]);
	probe strings(string, string name);
	probe mapped(struct point *p, int fd, char *path) : (view_t *p, char *path, int fd);
	probe reused(int a) : (int a, int a);
	probe dashed-name(int);
	probe _leading(int);
};
