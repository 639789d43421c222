BEGIN,
/* and */ END
,tick-1s { }
