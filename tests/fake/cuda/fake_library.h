/* What the fake libraries share: numbers rounded as tensor cores take them, workspaces, descriptors known to be alive.
 */
#ifndef CUDA_EMULATED_FAKE_LIBRARY_H
#define CUDA_EMULATED_FAKE_LIBRARY_H

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include <cuda_emulated.h>

namespace fake {

/* To `bits` bits of fraction (10: tf32, 7: bf16), ties to even; NaN and infinities stay. */
inline float rounded(float value, int bits) {
    uint32_t raw;
    if (bits >= 23 || !std::isfinite(value)) return value;
    std::memcpy(&raw, &value, sizeof raw);
    const uint32_t unit = 1u << (23 - bits);
    raw += unit / 2 - 1 + (raw / unit & 1);
    raw &= ~(unit - 1);
    std::memcpy(&value, &raw, sizeof raw);
    return value;
}

/* What memory holds: floats, or bf16, which is widened exactly and rounded to the nearest, ties to even. */
enum class kind { floats, bf16 };

inline size_t size_of(kind k) {
    return k == kind::bf16 ? sizeof(uint16_t) : sizeof(float);
}

inline float number_at(const void *from, kind k, int64_t index) {
    uint32_t raw;
    float value;
    if (k == kind::floats) return static_cast<const float *>(from)[index];
    raw = static_cast<uint32_t>(static_cast<const uint16_t *>(from)[index]) << 16;
    std::memcpy(&value, &raw, sizeof value);
    return value;
}

inline void set_number(void *to, kind k, int64_t index, float value) {
    uint32_t raw;
    if (k == kind::floats) {
        static_cast<float *>(to)[index] = value;
        return;
    }
    value = rounded(value, 7);
    std::memcpy(&raw, &value, sizeof raw);
    static_cast<uint16_t *>(to)[index] = static_cast<uint16_t>(std::isnan(value) ? 0x7fff : raw >> 16);
}

/* Handles and descriptors that were made and not destroyed. */
class living {
  public:
    void add(const void *one) {
        const std::lock_guard<std::mutex> guard(lock);
        all.insert(one);
    }
    bool remove(const void *one) {
        const std::lock_guard<std::mutex> guard(lock);
        return all.erase(one) != 0;
    }
    bool has(const void *one) {
        const std::lock_guard<std::mutex> guard(lock);
        return all.count(one) != 0;
    }

  private:
    std::mutex lock;
    std::set<const void *> all;
};

inline living &alive() {
    static living *const only = new living; // NOLINT: lives as long as the process
    return *only;
}

/* Knobs of tests, read whenever they matter. Is `word` among those in the variable, which commas part? */
inline bool listed(const char *variable, const std::string &word) {
    const char *text = std::getenv(variable);
    return text != nullptr && (std::string(",") + text + ",").find("," + word + ",") != std::string::npos;
}

/* The number in the variable; `otherwise` where there is none. */
inline int number_in(const char *variable, int otherwise) {
    const char *text = std::getenv(variable);
    return text != nullptr ? std::atoi(text) : otherwise;
}

/* A real algorithm leaves something in its workspace. */
inline void use_workspace(void *workspace, size_t bytes) {
    if (bytes > 0) std::memset(workspace, 0xff, bytes);
}

/* What an algorithm does whose sums are in no fixed order: its last bit differs from run to run. */
inline float unsteady(float value, kind k, unsigned run) {
    if (run % 2 == 0) return value;
    return k == kind::bf16 ? rounded(value, 7) * (1.0f + 1.0f / 128) : std::nextafter(value, INFINITY);
}

} // namespace fake

#endif
