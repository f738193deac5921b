/* printf in the C locale, whatever the embedding program has set. */
#include <errno.h>
#include <locale.h>
#include <stdio.h>

#include "runtime/base/text/text.h"

int tdm__format(char *out, size_t bytes, const char *format, va_list arguments) {
    int error = errno;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = uselocale(c);
    errno = error; /* for %m */
    int length = vsnprintf(out, bytes, format, arguments);
    uselocale(before);
    if (c != (locale_t)0) freelocale(c);
    if (length < 0) {
        if (bytes > 0) out[0] = '\0';
        length = 0;
    }
    errno = error;
    return length;
}
