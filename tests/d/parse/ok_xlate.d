struct out { int x; };
BEGIN { trace(xlate <struct out>(arg0).x); trace(xlate <struct out *>(arg0)->x); }
/* @@then: \[D_XLATE_NONE\] */
