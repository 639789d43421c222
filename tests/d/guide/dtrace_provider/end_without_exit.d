/* END fires also when the target's end ends the session.
   @@program: nothing.py
   @@python: 3.9 */
END { trace("end"); }
python$target:::function-entry /0/ { }
/* @@output
end
*/
