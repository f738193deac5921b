/* Where oneDNN's exceptions stop. Its C functions answer with a status, but let pass what the C++ library and its
 * generator of code throw when memory is short, and an exception that reaches C ends the process. */
#include <oneapi/dnnl/dnnl.h>

namespace {

template <auto function>
struct edge;

template <typename... Args, dnnl_status_t (*function)(Args...)>
struct edge<function> {
    static dnnl_status_t call(Args... args) noexcept {
        try {
            return function(args...);
        } catch (...) { /* all other faults have a status of their own */
            return dnnl_out_of_memory;
        }
    }
};

} // namespace

extern "C" {
#define TDM_EDGE(name)                                   \
    extern decltype(&name) const tdm__edge_##name;       \
    decltype(&name) const tdm__edge_##name = edge<&name>::call;
#include "ops/dnnl_module/edge.def"
#undef TDM_EDGE
}
