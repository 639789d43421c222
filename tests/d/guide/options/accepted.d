/* Options that need no tuning here. */
#pragma D option aggrate=10hz
#pragma D option cleanrate=50hz
#pragma D option jstackstrsize=1k
#pragma D option bufresize=manual
#pragma D option quietresize
#pragma D option statusrate=500ms
#pragma D option version=1.0
#pragma D option quiet=enabled
#pragma D option evaltime=main
#pragma D option linktype=dof
#pragma D option linkmode=static
#pragma D option lockmem=unlimited
#pragma D option maxframes=25
#pragma D option scratchsize=256
#pragma D option nusdtprobes=1000
#pragma D option unodefs
#pragma D option preallocate=2m
#pragma D option specsize=0
#pragma D option nspec=1000
#pragma D option bpflogsize=10m
#pragma D option aggpercpu
#pragma D option iregs=9
#pragma D option kdefs
#pragma D option knodefs
#pragma D option lazyload
#pragma D option linknommap
#pragma D option pcapsize=100
#pragma D option pgmax=9
#pragma D option printsize=1k
#pragma D option pspec
#pragma D option sysslice=system.slice
#pragma D option tregs=9
#pragma D option udefs
#pragma D option useruid=500
BEGIN { trace(1); exit(0); }
/* @@output
1
*/
