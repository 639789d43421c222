#include <unistd.h>

int ctor_lib(void);

int main(void)
{
	usleep(50000);
	return 7 + ctor_lib();
}
