inline int twice[int n] = n * 2;
inline string pick[int a, string b, string c] = a ? b : c;
BEGIN { trace(twice[4]); }
