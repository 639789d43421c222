/* attributes and binding are for what the script itself defines, before them or behind. */
int before;
inline int late = 3;
#pragma D attributes Evolving/Evolving/Common before
#pragma D attributes Evolving/Evolving/Common behind
#pragma D binding "1.0" late
#pragma D attributes Stable/Stable/Common nosuch	/* error: D_PRAGMA_UNUSED */
#pragma D binding "1.0" nosuch				/* error: D_PRAGMA_UNUSED */
#pragma D attributes Stable/Stable/Common pid		/* error: D_PRAGMA_SCOPE */
#pragma D attributes Stable/Stable/Common strlen	/* error: D_PRAGMA_SCOPE */
BEGIN
{
	behind = before + late;
}
