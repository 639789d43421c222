/* amin as a pragma.
   @@exit: 1
   @@stderr: attributes for probe description BEGIN \(Stable/Stable/Common\) */
#pragma D option amin=Standard/Standard/Common
BEGIN { trace(1); }
