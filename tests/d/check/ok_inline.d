inline int LIMIT = 3;
inline string NAME = "python";
inline int twice[int x] = x * 2;
BEGIN
/execname == NAME && pid < LIMIT/
{
	trace(twice[pid]);
}
