#pragma D option quiet
#pragma D option bufsize=4m
  #  pragma   D   option  aggsize=1m
#pragma D option strsize="128"
BEGIN { }
