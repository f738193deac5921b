/* Where oneDNN's exceptions stop. Its C functions answer with a status, but let pass what the C++ library and its
 * generator of code throw when memory is short, and an exception that reaches C ends the process.
 *
 * And where a lack of memory is told that they keep for themselves: in place of code that gets no memory they quietly
 * take the next best, whose bits differ. errno has it. But it says so too where one place had no memory and another
 * had: where there is room the call is made again, which all these functions bear (what the first made is lost), and
 * the second answer counts. Without room it is not, for a crash is as likely. */
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
        } catch (...) { /* all other faults have a status of their own */
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
