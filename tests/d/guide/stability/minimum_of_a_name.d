/* amin: curthread is Stable, but what it points to is Private.
   @@options: -q -e -x errtags -x amin=Evolving/Evolving/Common
   @@exit: 1
   @@stderr: \[D_ATTR_MIN\] line \d+: column \d+: attributes for \w+ curthread \(Stable/Private/Common\) are less than predefined minimum */
BEGIN
{
	trace((int)curthread);
}
