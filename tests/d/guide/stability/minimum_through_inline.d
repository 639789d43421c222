/* An inline has what its expression has.
   @@options: -q -e -x errtags -x amin=Evolving/Evolving/Common
   @@exit: 1
   @@stderr: \[D_ATTR_MIN\] */
inline int t = (int)curthread;
BEGIN { trace(t); }
