BEGIN
{
	stack(); stack(5); ustack(); ustack(5); ustack(5, 0); jstack(3); pystack(3, "line"); pystack(3, "function"); pystack(3, "async"); pystack(3, "async line"); pystack(3, "async function");
	@[stack(), ustack(2), usym(1), uaddr(2), ufunc(3), umod(4), sym(5), func(6), mod(7)] = count();
	usym(1);
	printa("%k %k %A %A %A %A %a %a %a %@d\n", @);
}
