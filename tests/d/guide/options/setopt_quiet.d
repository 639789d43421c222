/* setopt() of quiet holds from the next record on.
   @@options:
   @@stderr: matched 2 probes */
BEGIN { setopt("quiet"); }
BEGIN { trace("x"); exit(0); }
