/* The version that a script is for. */
#pragma D option version=1.6.3
BEGIN { trace("ok"); exit(0); }
/* @@output
ok
*/
