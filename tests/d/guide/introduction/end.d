/* END runs when everything else is over; its output is the last. */
BEGIN { trace("begin "); exit(0); }
END { trace("end"); }
/* @@output
begin end
*/
