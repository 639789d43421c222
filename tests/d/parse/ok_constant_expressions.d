inline int N = 4;
int a[N * 2 + sizeof (int)], b[1 ? 2 : 3], c[(char)257], d[~0 & 3], e[10 / 3 % 2], f[1 << 3 >> 1], g[!0], h[5 > 3 && 2 <= 2];
/* @@then: no probes specified */
