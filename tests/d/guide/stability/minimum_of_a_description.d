/* A description whose function is part of it rests on that function's name.
   @@options: -q -e -x errtags -x amin=Evolving/Evolving/Common
   @@exit: 1
   @@stderr: \[D_ATTR_MIN\]
   @@program: ../user/calls.py
   @@python: 3.9 */
pid$target:libc:getppid:entry { }
