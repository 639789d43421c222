/* exit() gives the status of the command.
   @@exit: 42 */
BEGIN { exit(42); }
/* @@output

*/
