#include "runtime/base/system/cpus.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/call/host.h"

/* Reads one or two numbers from the start of a file. Returns how many it found. */
static int read_numbers(const char *path, long long *first, long long *second) {
    FILE *file = fopen(path, "re");
    if (file == NULL) return 0;
    int count = fscanf(file, "%lld %lld", first, second);
    fclose(file);
    return count;
}

double tdm__cgroup_cpus(void) {
    long long quota = 0, period = 0, unused;
    if (read_numbers("/sys/fs/cgroup/cpu.max", &quota, &period) < 2 &&
        (read_numbers("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", &quota, &unused) < 1 ||
         read_numbers("/sys/fs/cgroup/cpu/cpu.cfs_period_us", &period, &unused) < 1))
        return 0;
    return quota > 0 && period > 0 ? (double)quota / (double)period : 0;
}

int tdm__cpus_available(const tdm_host *host) {
    cpu_set_t set;
    if (tdm__host_cpus(host) > 0) return tdm__host_cpus(host);
    int count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    double granted = tdm__cgroup_cpus();
    if (granted > 0 && granted < count) count = (int)granted;
    return count < 1 ? 1 : count;
}

void tdm__cpus_read(tdm_cpus *cpus) {
    cpu_set_t set;
    _Static_assert(sizeof(set) == sizeof(cpus->word), "the kernel's set has 1,024 bits");
    memset(cpus, 0xff, sizeof(*cpus));
    if (sched_getaffinity(0, sizeof(set), &set) == 0) memcpy(cpus, &set, sizeof(set));
}

int tdm__cpus_sharers(const tdm_cpus *cpus, int count, int mine) {
    int sharers = 0;
    for (int i = 0; i < count; i++) {
        int64_t common = 0;
        for (size_t w = 0; w < sizeof(cpus->word) / sizeof(cpus->word[0]); w++)
            common |= cpus[i].word[w] & cpus[mine].word[w];
        sharers += i == mine || common != 0;
    }
    return sharers;
}
