/*
 * @@python: 3.9 3.11 3.13 3.14 3.15
 * The innermost frames of deep stacks, one key for all that are alike in them; none where there is no thread.
 */
BEGIN { pystack(); printf("begin\n"); }
python$target:::function-entry /copyinstr(arg1) == "bottom"/ { @[pystack(3)] = count(); }
python$target:::function-return /copyinstr(arg1) == "bottom" && !n++/ { pystack(1); }
END { printa("%k%@d\n", @); }
/* @@output

begin

              [ x.py:8 (bottom) ]

              [ x.py:7 (bottom) ]
              [ x.py:5 (down) ]
              [ x.py:11 (<module>) ]
1

              [ x.py:7 (bottom) ]
              [ x.py:5 (down) ]
              [ x.py:13 (<module>) ]
3

              [ x.py:7 (bottom) ]
              [ x.py:5 (down) ]
              [ x.py:4 (down) ]
199
*/
