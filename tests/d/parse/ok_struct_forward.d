struct b;
struct a { struct b *p; };
struct b { struct a a; };
/* @@then: no probes specified */
