/* Linked into every program of an address-sanitizer build. The leak check walks thread-local storage through
 * intercepted calls, and crashes on that of threads whose libraries were loaded at run time; without the interception
 * it works. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);

const char *__asan_default_options(void) {
    return "detect_leaks=1:intercept_tls_get_addr=0";
}
