BEGIN
{
	;
	;;
}
