self int indent;

python123:::function-entry
/copyinstr(arg1) == "start"/
{
	self->trace = 1;
}

python123:::function-entry
/self->trace/
{
	printf("%d\t%*s:", timestamp, 15, probename);
	printf("%*s", self->indent, "");
	printf("%s:%s:%d\n", basename(copyinstr(arg0)), copyinstr(arg1), arg2);
	self->indent++;
}

python123:::function-return
/self->trace/
{
	self->indent--;
	printf("%d\t%*s:", timestamp, 15, probename);
	printf("%*s", self->indent, "");
	printf("%s:%s:%d\n", basename(copyinstr(arg0)), copyinstr(arg1), arg2);
}

python123:::function-return
/copyinstr(arg1) == "start"/
{
	self->trace = 0;
}
/* @@then: \[D_PDESC_ZERO\] */
