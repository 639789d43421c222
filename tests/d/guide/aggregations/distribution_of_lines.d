/* Where the functions of a program stand: a distribution of line numbers.
   @@blanks: any
   @@program: calls.py
   @@python: 3.9 3.14 */
python$target:::function-entry
/basename(copyinstr(arg0)) == "calls.py" && copyinstr(arg1) != "<module>"/
{
	@ = lquantize(arg2, 0, 10, 1);
}
/* @@output
value ------------- Distribution ------------- count
0 | 0
1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 6
2 | 0
3 | 0
4 | 0
5 |@@@@@@@@@@ 2
6 | 0
*/
