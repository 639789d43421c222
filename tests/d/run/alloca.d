/* @@stderr: (?s)error in dt_clause_1 .*invalid address.*error in dt_clause_2 .*invalid address.*error in dt_clause_3 .*out of scratch space */
/* What is copied where is said by the guide: bcopy() from memory of any kind, copyinto() from the process's, both to
   memory that alloca() or copyin() gave. */
python$target:::function-entry
/copyinstr(arg1) == "twelve_bytes"/
{
	this->a = alloca(32);
	copyinto(arg1, 13, this->a);
	printf("%s\n", stringof(this->a));
	bcopy((void *)((uintptr_t)this->a + 7), this->a, 6);
	printf("%s\n", stringof(this->a));
	this->c = copyin(arg1, 13);
	bcopy(this->a, (void *)((uintptr_t)this->c + 7), strlen("bytes"));
	printf("%s %d\n", stringof(this->c), *(char *)this->a);
	this->n = strlen(stringof(this->c)) - 6;
	copyinto(arg1 + 7, this->n, this->a);
	printf("%s\n", stringof(this->a));
}

python$target:::function-entry
/copyinstr(arg1) == "twelve_bytes"/
{
	this->b = alloca(8);
	copyinto(arg1, 40000, this->b);
}

python$target:::function-entry
/copyinstr(arg1) == "twelve_bytes"/
{
	bcopy(copyin(arg1, 8), (void *)arg1, 8);
}

python$target:::function-entry
/copyinstr(arg1) == "twelve_bytes"/
{
	this->many = alloca(arg1);
}
/* @@output
twelve_bytes
bytes
twelve_bytes 98
bytes
*/
