/* What has as much as is asked for is accepted.
   @@options: -q -x amin=Evolving/Evolving/Common */
profile:::tick-1ms { trace(timestamp); exit(0); }
