#pragma D binding "1.0" x
#pragma D binding "1.2.3" y
inline int x = 1;
/* @@then: unused #pragma binding */
