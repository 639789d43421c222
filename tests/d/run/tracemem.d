/* The layout is that of the guide's example of trace(); the bytes are as od -tx1 shows them. */
python$target:::function-entry
/strlen(copyinstr(arg1)) == 60/
{
	this->p = copyin(arg1, 61);
	this->n = strlen(copyinstr(arg1));
	tracemem(this->p, 61);
	tracemem(this->p, 23);
	tracemem(this->p, 23, this->n - 55);
	tracemem(this->p, 23, this->n);
	tracemem(this->p, 23, 0);
}
/* @@output

             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
         0: 74 68 65 5f 6e 61 6d 65 5f 6f 66 5f 74 68 69 73  the_name_of_this
        10: 5f 66 75 6e 63 74 69 6f 6e 5f 69 73 5f 74 61 6b  _function_is_tak
        20: 65 6e 5f 66 6f 72 5f 62 79 74 65 73 5f 74 68 61  en_for_bytes_tha
        30: 74 5f 61 72 65 5f 74 72 61 63 65 64 00           t_are_traced.

             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
         0: 74 68 65 5f 6e 61 6d 65 5f 6f 66 5f 74 68 69 73  the_name_of_this
        10: 5f 66 75 6e 63 74 69                             _functi

             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
         0: 74 68 65 5f 6e                                   the_n

             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
         0: 74 68 65 5f 6e 61 6d 65 5f 6f 66 5f 74 68 69 73  the_name_of_this
        10: 5f 66 75 6e 63 74 69                             _functi

             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
*/
