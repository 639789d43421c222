/* $target is the process of -c.
   @@program: hello.py
   @@python: 3.9 */
python$target:::function-entry /pid == $target && copyinstr(arg1) == "<module>"/ { trace("yes"); exit(0); }
/* @@output
yes
*/
