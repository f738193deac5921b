/* The edge at which oneDNN's exceptions stop. Its C functions return a status, but they let through what the C++
 * library and the code generator throw when memory is short, and an exception that reaches C ends the process.
 *
 * The edge also reports a lack of memory that oneDNN hides: if it gets no memory for its best code it silently uses
 * slower code, whose bits differ. errno shows this. But errno is also set if only one of several attempts got no
 * memory. So if there is room now the call is made again and the second result counts. All these functions may be
 * called twice (what the first call made is leaked). Without room it is not called again, because it might crash. */
#include <cerrno>

#include <oneapi/dnnl/dnnl.h>

extern "C" dnnl_status_t tdm__dnnl_room(void);

namespace {

template <auto function>
struct edge;

template <typename... Args, dnnl_status_t (*function)(Args...)>
struct edge<function> {
    static dnnl_status_t once(Args... args) noexcept {
        errno = 0;
        try {
            return function(args...);
        } catch (...) { /* all other faults are returned as a status */
            errno = ENOMEM;
            return dnnl_out_of_memory;
        }
    }
    static dnnl_status_t call(Args... args) noexcept {
        dnnl_status_t status = once(args...);
        if (errno == ENOMEM && tdm__dnnl_room() == dnnl_success) status = once(args...);
        return errno == ENOMEM ? dnnl_out_of_memory : status;
    }
};

} // namespace

extern "C" {
#define TDM_EDGE(name)                                   \
    extern decltype(&name) const tdm__edge_##name;       \
    decltype(&name) const tdm__edge_##name = edge<&name>::call;
#include "runtime/backends/dnnl/kit/edge.def"
#undef TDM_EDGE
}
