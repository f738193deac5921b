/* A function of Gloo's that this module replaces.
 *
 * When a connection has come, Gloo's thread asks for the name of its other end. If that has reset the connection
 * meanwhile, because its process died, there is none: Gloo's own function then throws, in a thread where nobody
 * catches, and so ends this process without a word. Here the name is empty instead. The connection is as broken as
 * before, so the first read fails, which Gloo reports as it reports a lost peer.
 *
 * libgloo calls the function by its name, and the linker looks for it in the module that has loaded libgloo first. If
 * the program has loaded libgloo before, it has Gloo's own. */
#include <cstring>

#include <sys/socket.h>

#include <gloo/transport/tcp/address.h>

namespace gloo {
namespace transport {
namespace tcp {

/* Weak: a libgloo.a that is linked in has its own. */
__attribute__((weak, visibility("default"))) Address Address::fromPeerName(int fd) {
    sockaddr_storage name;
    socklen_t bytes = sizeof(name);
    std::memset(&name, 0, sizeof(name));
    if (getpeername(fd, reinterpret_cast<sockaddr *>(&name), &bytes) != 0) {
        std::memset(&name, 0, sizeof(name));
        name.ss_family = AF_INET; // Gloo prints it: a family that it does not know would throw, too
    }
    return Address(name);
}

} // namespace tcp
} // namespace transport
} // namespace gloo
