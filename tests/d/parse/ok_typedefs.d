typedef int number;
typedef number *pointer;
typedef struct point { int x, y; } point_t;
point_t p;
typedef int number;
number n;
typedef int (*fn)(number);
/* @@then: no probes specified */
