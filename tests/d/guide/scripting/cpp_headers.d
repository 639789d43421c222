/* System headers through -C: what they have that is gcc's, or inline functions, is none of the script's business.
   @@options: -q -C */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
BEGIN
{
	this->s = (struct sockaddr_in *)alloca(sizeof (struct sockaddr_in));
	this->s->sin_family = AF_INET;
	this->s->sin_port = htons(80);
	printf("%d %d %d ", sizeof (struct sockaddr_in), this->s->sin_family, ntohs(this->s->sin_port));
	printf("%d %d %d %d %d", ENOENT, SIGTERM, O_CREAT, sizeof (struct timespec), sizeof (id_t));
	exit(0);
}
/* @@output
16 2 80 2 15 64 16 4
*/
