/* #line changes what messages call the place.
   @@exit: 1
   @@stderr: other.d.*line 70|line 70.*other.d */
#line 70 "other.d"
BEGIN { trace(nosuch); }
