/* With -Z it is none.
   @@options: -q -Z
   @@program: query.py
   @@python: 3.9 */
python$target:::no-such-marker { }
END { trace("end"); }
/* @@output
end
*/
