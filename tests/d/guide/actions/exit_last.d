/* The first exit() ends it; its status holds against that of END.
   @@exit: 2 */
BEGIN { exit(2); }
END { trace("end"); }
/* @@output
end
*/
