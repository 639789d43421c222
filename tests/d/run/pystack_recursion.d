/*
 * @@python: 3.9 3.11 3.13 3.14 3.15
 * The innermost frames of deep stacks, one key for all of the same functions; none where there is no thread.
 */
BEGIN { pystack(); printf("begin\n"); }
python$target:::function-entry /copyinstr(arg1) == "bottom"/ { @[pystack(3)] = count(); }
python$target:::function-return /copyinstr(arg1) == "bottom" && !n++/ { pystack(1); }
END { printa("%k%@d\n", @); }
/* @@output

begin

              [ x.py:8 (bottom) ]

              [ x.py:7 (bottom) ]
              [ x.py:2 (down) ]
              [ x.py:1 (<module>) ]
4

              [ x.py:7 (bottom) ]
              [ x.py:2 (down) ]
              [ x.py:2 (down) ]
199
*/
