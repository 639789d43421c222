/* %e, %f and %g print floating-point numbers of the process, from its memory, a copy or a variable.
   floating.py prints the same with the argument "print".
   @@python: 3.11 */
struct numbers { double d; float f; float more[3]; };
struct numbers kept[int];
syscall::write:entry
/pid == $target && arg2 == sizeof (struct numbers)/
{
	this->p = (struct numbers *)copyin(arg1, sizeof (struct numbers));
	printf("%f %.3f %10.2e|%-10.1f|%g %G\n", this->p->d, this->p->f, this->p->more[0], this->p->d, this->p->more[1],
	       this->p->more[2]);
	printf("%+f % .1f %012.4f %#g %E\n", this->p->d, this->p->d, this->p->f, this->p->d, this->p->f);
	kept[1] = *this->p;
	printf("%g %g %g\n", kept[1].d, kept[1].more[2], *(double *)copyin(arg1, 8));
	print(kept[1].f);
}
/* @@output
3.250000 -0.100   1.00e+10|3.2       |6.02e+23 INF
+3.250000  3.2 -000000.1000 3.25000 -1.000000E-01
3.25 inf 3.25
float -1.0000000e-01
*/
