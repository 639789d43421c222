# 12 "file.d"
#line 20
#line 30 "other.h" 1
# 1 "<built-in>" 1 3 4
BEGIN { }
