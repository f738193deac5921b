/* The local socket at which the ranks of one job meet. */
#ifndef TDM_COMM_DOOR_H
#define TDM_COMM_DOOR_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <tandem/comm.h>

enum { TDM_DOOR_WHERE = 160 };

typedef struct tdm_door {
    struct sockaddr_un address;
    socklen_t address_bytes;
    bool is_file;
    uint64_t job;               /* hash of what identifies the job */
    struct stat made;           /* the socket file that tdm__door_listen has made */
    char where[TDM_DOOR_WHERE]; /* for messages */
} tdm_door;

/* The address of the job's socket, from init_method as for tdm_launch_meet. */
tdm_status tdm__door_find(tdm_door *door, const tdm_launch_facts *facts, const char *init_method);
tdm_status tdm__door_listen(tdm_door *door, int *listener);
void tdm__door_leave(const tdm_door *door, int listener);
/* Connects to the listener. *visitor < 0: nobody listens yet. A listener of another user is never returned. Fails if
 * the path of a socket file is occupied by something else; tdm__door_listen fails then, too. */
tdm_status tdm__door_visit(const tdm_door *door, int *visitor);
bool tdm__door_is_same_user(int fd);
/* The pid of the process at the other end of a socket. 0 if it has none here, as in another container. */
int tdm__door_pid(int fd);

#endif
