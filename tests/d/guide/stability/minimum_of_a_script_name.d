/* The script's own variables are as stable as it says.
   @@options: -q -e -x errtags -x amin=Evolving/Evolving/Common
   @@exit: 1
   @@stderr: attributes for identifier x \(Unstable/Unstable/Common\) */
#pragma D attributes Unstable/Unstable/Common x
int x;
BEGIN { trace(x); }
