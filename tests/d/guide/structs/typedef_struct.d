/* A name for a structure's type. */
typedef struct pair { uint8_t a; uint8_t b; } pair_t;
pair_t v;
BEGIN
{
	v.a = 300;
	printf("%d %d", v.a, sizeof (pair_t));
	exit(0);
}
/* @@output
44 2
*/
