/* Libraries that have the names of a symbol table, FAKE_TABLE, and a version, FAKE_VERSION; a function is taken away by
 * renaming it on the command line. Only the version may be called. */
#include <stddef.h>

#define TDM_SYMBOL(name)                                    \
    __attribute__((visibility("default"))) void name(void); \
    void name(void) {}
#define cublasLtGetVersion fake_other_version
#define cudnnGetVersion fake_another_version
#include FAKE_TABLE
#undef cublasLtGetVersion
#undef cudnnGetVersion

#ifdef FAKE_VERSION
__attribute__((visibility("default"))) size_t FAKE_VERSION_FUNCTION(void);
size_t FAKE_VERSION_FUNCTION(void) {
    return FAKE_VERSION;
}
#endif
