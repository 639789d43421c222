/* Options that need no tuning here. */
#pragma D option aggrate=10hz
#pragma D option cleanrate=50hz
#pragma D option jstackstrsize=1k
#pragma D option bufresize=manual
#pragma D option quietresize
#pragma D option statusrate=500ms
#pragma D option version=1.0
#pragma D option stdc=c
BEGIN { trace(1); exit(0); }
/* @@output
1
*/
