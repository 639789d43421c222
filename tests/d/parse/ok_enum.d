enum e { A, B = 5, C, D = C * 2, };
enum e x;
enum { ALONE };
int a[D];
BEGIN { trace(B); }
