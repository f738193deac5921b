/* hosts.c - the list of --hosts: see hosts.h. */
#include "tools/launch/hosts.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <ifaddrs.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* ---- is it this machine? ---- */

/* The bytes of an address; 0: the text is none. */
static size_t address_of(const char *text, int *family, unsigned char out[16]) {
    *family = AF_INET;
    if (inet_pton(AF_INET, text, out) == 1) return 4;
    *family = AF_INET6;
    return inet_pton(AF_INET6, text, out) == 1 ? 16 : 0;
}

static bool has_address(const char *text) {
    unsigned char wanted[16];
    int family;
    const size_t bytes = address_of(text, &family, wanted);
    struct ifaddrs *list;
    bool found = bytes == 4 && wanted[0] == 127;
    if (bytes == 0 || getifaddrs(&list) != 0) return found;
    for (const struct ifaddrs *i = list; i && !found; i = i->ifa_next) {
        if (!i->ifa_addr || i->ifa_addr->sa_family != family) continue;
        const void *own = family == AF_INET
                              ? (const void *)&((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr
                              : &((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr;
        found = memcmp(own, wanted, bytes) == 0;
    }
    freeifaddrs(list);
    return found;
}

static bool is_here(const char *name) {
    char own[256] = "";
    if (strcasecmp(name, "localhost") == 0 || has_address(name)) return true;
    if (gethostname(own, sizeof own - 1) != 0) return false;
    if (strcasecmp(name, own) == 0) return true;
    own[strcspn(own, ".")] = 0;
    return strcasecmp(name, own) == 0;
}

/* ---- one host ---- */

/* ssh takes a word that begins with `-` for an option. */
static bool is_name(const char *word, const char *also) {
    bool good = word[0] && word[0] != '-';
    for (; *word; word++) good = good && (isalnum((unsigned char)*word) || strchr(also, *word));
    return good;
}

static bool read_count(const char *text, int *out) {
    char *end;
    const long count = strtol(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || count < 1 || count > LAUNCH_RANKS_MAX) return false;
    *out = (int)count;
    return true;
}

/* Splits "[address]:2" or "name:2" in place. False: it is neither. */
static bool split(char *text, char **name, char **count) {
    const bool in_brackets = text[0] == '[';
    char *end = in_brackets ? strchr(text, ']') : text + strcspn(text, ":");
    *name = in_brackets ? text + 1 : text;
    *count = NULL;
    if (!end) return false;
    if (in_brackets) *end++ = 0;
    if (*end && *end != ':') return false;
    if (*end) *count = end + 1;
    *end = 0;
    return is_name(*name, in_brackets ? ".:%_-" : "._-");
}

static int read_host(const tool *t, const char *entry, launch_host *out) {
    FREED char *text = text_copy(entry);
    char *at = strchr(text, '@'), *name, *count;
    if (at) *at = 0;
    const bool has_user = at != NULL, is_good = split(at ? at + 1 : text, &name, &count);
    if (!is_good || (has_user && !is_name(text, "._-")))
        return args_wrong(t,
                          "`--hosts`: `%s` is no host; write name, user@name or [IPv6 address], and `:2` behind it "
                          "for two ranks there",
                          entry);
    if (count && !read_count(count, &out->ranks))
        return args_wrong(t, "`--hosts`: the number of ranks of `%s` must be 1 to %d, got `%s`", name, LAUNCH_RANKS_MAX,
                          count);
    out->name = text_copy(name);
    out->target = has_user ? text_format("%s@%s", text, name) : text_copy(name);
    out->is_here = !has_user && is_here(name);
    return TDM_OK;
}

/* ---- the list ---- */

static int add_host(const tool *t, launch_hosts *list, const char *entry) {
    if (list->count == LAUNCH_HOSTS_MAX) return args_wrong(t, "`--hosts` has more than %d hosts", LAUNCH_HOSTS_MAX);
    const launch_host *added = &list->host[list->count++];
    const int code = read_host(t, entry, &list->host[list->count - 1]);
    if (code != TDM_OK) return code;
    for (const launch_host *other = list->host; other < added; other++) {
        if (strcasecmp(other->name, added->name) == 0)
            return args_wrong(t, "`--hosts` has `%s` twice; write `%s:2` for two ranks there", added->name,
                              added->name);
    }
    return TDM_OK;
}

int hosts_read(const tool *t, const char *text, launch_hosts *out) {
    FREED char *copy = text_copy(text);
    char *rest = copy;
    int code = TDM_OK;
    *out = (launch_hosts){.host = memory_new(LAUNCH_HOSTS_MAX, sizeof *out->host)};
    while (rest && code == TDM_OK) code = add_host(t, out, strsep(&rest, ","));
    return code;
}

void hosts_free(launch_hosts *list) {
    for (int i = 0; i < list->count; i++) {
        free(list->host[i].target);
        free(list->host[i].name);
    }
    free(list->host);
    *list = (launch_hosts){0};
}
