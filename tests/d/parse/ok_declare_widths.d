signed char a; unsigned char b; short int c; unsigned short d; long int e; unsigned long f; long long int g; unsigned long long h; int unsigned i; float j; long double k;
/* @@then: no probes specified */
