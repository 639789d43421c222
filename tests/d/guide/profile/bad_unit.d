/* A unit that does not exist matches no probe.
   @@exit: 1
   @@stderr: does not match any probes */
tick-1fortnight { }
