/* Division by multiplying, on which every index of the CUDA kernels rests: against the processor's. */
#include <cstdint>
#include <cstdio>

#include "runtime/backends/cuda/kit/kernel.h"

using namespace tdm_cuda;

static int failures;

static void check(int64_t n, int64_t by) {
    const divider d = divider_of(by);
    int64_t rest = n;
    const int64_t remainder = split(d, &rest);
    bool good = quotient(d, n) == n / by && rest == n / by && remainder == n % by;
    if (n <= INT32_MAX && by <= INT32_MAX) {
        int32_t small = static_cast<int32_t>(n);
        good = good && quotient(d, small) == n / by && split(d, &small) == n % by && small == n / by;
    }
    if (good) return;
    std::fprintf(stderr, "%lld / %lld\n", static_cast<long long>(n), static_cast<long long>(by));
    failures++;
}

/* Around every multiple that could be off by one: near 0, near the largest, and at random. */
static void check_divisor(int64_t by) {
    uint64_t random = 88172645463325252u + static_cast<uint64_t>(by);
    const int64_t tops[] = {INT32_MAX, (int64_t)INT32_MAX + 1, (int64_t)1 << 33, (int64_t)1 << 45};
    for (int64_t n = 0; n < 5; n++) check(n, by);
    for (int64_t top : tops)
        for (int64_t k = 0; k < 3; k++) {
            const int64_t multiple = top / by * by - k * by;
            for (int64_t n = multiple - 1; n <= multiple + 1; n++)
                if (n >= 0) check(n, by);
            check(top - k, by);
        }
    for (int k = 0; k < 50; k++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        check(static_cast<int64_t>(random >> 33), by);
        check(static_cast<int64_t>(random >> 20), by);
    }
}

int main() {
    for (int64_t by = 1; by < 3000; by++) check_divisor(by);
    for (int shift = 10; shift < 40; shift++)
        for (int64_t by = ((int64_t)1 << shift) - 2; by <= ((int64_t)1 << shift) + 2; by++) check_divisor(by);
    for (int64_t by = 3001; by < (int64_t)1 << 36; by = by * 17 / 13 + 1) check_divisor(by);
    std::printf("%s division\n", failures == 0 ? "ok    " : "FAILED");
    return failures != 0;
}
