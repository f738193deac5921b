/* See gloo_thread.h. */
#include "runtime/backends/gloo/gloo_thread.h"

#include <algorithm>
#include <ctime>

#include <sys/eventfd.h>
#include <unistd.h>

#include <gloo/common/error.h>

namespace {

constexpr long hurry_ns = 200000;

} // namespace

gloo_thread::gloo_thread(const std::shared_ptr<gloo::transport::Device> &of)
    : device(std::dynamic_pointer_cast<gloo::transport::tcp::Device>(of)) {
    if (device == nullptr) throw gloo::Exception("its device is not one of TCP");
    wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake < 0) throw gloo::Exception("no eventfd could be made");
    try {
        device->registerDescriptor(wake, EPOLLIN, this);
    } catch (...) {
        close(wake);
        throw;
    }
}

gloo_thread::~gloo_thread() {
    hurry();
    try {
        device->unregisterDescriptor(wake, this);
    } catch (...) { // it is not there
    }
    device.reset(); // the last that used it: Gloo's thread has ended
    close(wake);
}

void gloo_thread::handleEvents(int events) {
    uint64_t count;
    (void)events;
    if (hurries) {
        const timespec pause = {0, hurry_ns};
        nanosleep(&pause, nullptr); // the descriptor stays readable: epoll returns at once
        return;
    }
    (void)!read(wake, &count, sizeof(count));
    const std::lock_guard<std::mutex> lock(mutex);
    for (; !queue.empty(); queue.pop_front()) queue.front()->run();
}

static void ring(int fd) {
    const uint64_t one = 1;
    (void)!write(fd, &one, sizeof(one)); // fails only if it is readable for long
}

void gloo_thread::add(const std::vector<gloo_work *> &work) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (queue.empty() && !work.empty()) ring(wake);
    queue.insert(queue.end(), work.begin(), work.end());
}

void gloo_thread::remove(gloo_work *work) {
    const std::lock_guard<std::mutex> lock(mutex);
    queue.erase(std::remove(queue.begin(), queue.end(), work), queue.end());
}

void gloo_thread::hurry() {
    hurries = true;
    ring(wake);
}
