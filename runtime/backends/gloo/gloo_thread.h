/* Work for Gloo's own thread.
 *
 * Gloo's thread serves a connection only if it gets the connection's lock at once. Else it asks epoll again, which says
 * at once that the connection is ready, and so it spins for as long as another thread holds the lock: through the whole
 * of a long write, or until that thread is back on a processor, which the spinning keeps from it. Where ranks share
 * processors that was most of the time of many ranks. So messages are posted by Gloo's thread, and no other thread
 * touches a connection that is in use. */
#ifndef TDM_BACKENDS_GLOO_THREAD_H
#define TDM_BACKENDS_GLOO_THREAD_H

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include <gloo/transport/tcp/device.h>

/* Something for Gloo's thread to do. */
class gloo_work {
  public:
    virtual ~gloo_work() = default;
    virtual void run() noexcept = 0; // must not wait
};

class gloo_thread : public gloo::transport::tcp::Handler {
    std::shared_ptr<gloo::transport::tcp::Device> device;
    int wake = -1; // an eventfd in Gloo's epoll; readable: there is work
    std::atomic<bool> hurries{false};
    std::mutex mutex; // guards the queue; held while work runs
    std::deque<gloo_work *> queue;

    void handleEvents(int events) override;

  public:
    explicit gloo_thread(const std::shared_ptr<gloo::transport::Device> &of); // throws what Gloo throws
    ~gloo_thread() override;
    gloo_thread(const gloo_thread &) = delete;
    gloo_thread &operator=(const gloo_thread &) = delete;

    void add(const std::vector<gloo_work *> &work); // they will run soon, in this order
    void remove(gloo_work *work);                   // when this returns it has run, or never will
    /* To close a connection waits until Gloo's thread has asked epoll once more, which it does a hundred times a second
     * when nothing happens. From here on it does so some thousand times a second, and no work is done. */
    void hurry();
};

#endif
