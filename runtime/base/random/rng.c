/* MT19937, and ATen's draws from it. Every draw fills memory in order, so results do not depend on threads. */
#include "runtime/base/random/rng.h"

#include <math.h>
#include <string.h>

#include "runtime/base/random/rng_normal.h"
#include "runtime/base/twin.h"

enum { WORDS = 624, SHIFT = 397 };

void tdm__rng_seed(tdm_rng *rng, uint64_t seed, tdm_rng_profile profile) {
    memset(rng, 0, sizeof(*rng));
    rng->profile = profile;
    rng->next = WORDS;
    rng->state[0] = (uint32_t)seed;
    for (uint32_t i = 1; i < WORDS; i++)
        rng->state[i] = 1812433253u * (rng->state[i - 1] ^ rng->state[i - 1] >> 30) + i;
}

TDM_INLINE uint32_t twist(uint32_t upper, uint32_t lower) {
    return ((upper & 0x80000000u) | (lower & 0x7FFFFFFFu)) >> 1 ^ ((0u - (lower & 1u)) & 0x9908B0DFu);
}

/* Two loops without wrap-around, so that each can be vectorised. */
TDM_INLINE void regenerate(uint32_t *state) {
    for (int i = 0; i < WORDS - SHIFT; i++) state[i] = state[i + SHIFT] ^ twist(state[i], state[i + 1]);
    for (int i = WORDS - SHIFT; i < WORDS - 1; i++)
        state[i] = state[i - (WORDS - SHIFT)] ^ twist(state[i], state[i + 1]);
    state[WORDS - 1] = state[SHIFT - 1] ^ twist(state[WORDS - 1], state[0]);
}

TDM_INLINE uint32_t temper(uint32_t word) {
    word ^= word >> 11;
    word ^= word << 7 & 0x9D2C5680u;
    word ^= word << 15 & 0xEFC60000u;
    return word ^ word >> 18;
}

uint32_t tdm__rng_u32(tdm_rng *rng) {
    if (rng->next == WORDS) {
        regenerate(rng->state);
        rng->next = 0;
    }
    return temper(rng->state[rng->next++]);
}

uint64_t tdm__rng_u64(tdm_rng *rng) {
    uint64_t high = tdm__rng_u32(rng);
    return high << 32 | tdm__rng_u32(rng);
}

/* Each number is 24 random bits, scaled to [low, low + width]. */
TDM_INLINE void fill_uniform(tdm_rng *rng, float *restrict out, size_t count, float low, float width, bool fused) {
    while (count > 0) {
        if (rng->next == WORDS) {
            regenerate(rng->state);
            rng->next = 0;
        }
        size_t room = (size_t)(WORDS - rng->next);
        size_t now = count < room ? count : room;
        const uint32_t *restrict state = rng->state + rng->next;
        for (size_t i = 0; i < now; i++) {
            float x = (float)(int32_t)(temper(state[i]) & 0xFFFFFFu) * 0x1p-24f;
            out[i] = fused ? __builtin_fmaf(x, width, low) : x * width + low;
        }
        rng->next += (int)now;
        out += now;
        count -= now;
    }
}

TDM_FMA_TWIN static void fill_fused_fma(tdm_rng *rng, float *out, size_t count, float low, float width) {
    fill_uniform(rng, out, count, low, width, true);
}

static void fill_fused_any(tdm_rng *rng, float *out, size_t count, float low, float width) {
    fill_uniform(rng, out, count, low, width, true);
}

static void fill_plain(tdm_rng *rng, float *out, size_t count, float low, float width) {
    fill_uniform(rng, out, count, low, width, false);
}

static void fill(tdm_rng *rng, float *out, size_t count, float low, float width) {
    if (rng->profile == TDM_RNG_TORCH_GENERIC)
        fill_plain(rng, out, count, low, width);
    else if (tdm__cpu_has_fma())
        fill_fused_fma(rng, out, count, low, width);
    else
        fill_fused_any(rng, out, count, low, width);
}

void tdm__rng_rand(tdm_rng *rng, float *out, size_t count) {
    fill(rng, out, count, 0.0f, 1.0f);
}

void tdm__rng_uniform(tdm_rng *rng, float *out, size_t count, double low, double high) {
    fill(rng, out, count, (float)low, (float)high - (float)low);
}

static double uniform_double(tdm_rng *rng) {
    return (double)(tdm__rng_u64(rng) & ((UINT64_C(1) << 53) - 1)) * 0x1p-53;
}

/* One standard normal number. They are made in pairs; the generator keeps the second for the next call. */
static double scalar_normal(tdm_rng *rng) {
    if (rng->has_cached_normal) {
        rng->has_cached_normal = false;
        return rng->cached_normal;
    }
    double angle = 2.0 * M_PI * uniform_double(rng);
    double radius = sqrt(-2.0 * log1p(-uniform_double(rng)));
    rng->cached_normal = radius * sin(angle);
    rng->has_cached_normal = true;
    return radius * cos(angle);
}

void tdm__rng_normal(tdm_rng *rng, float *out, size_t count, double mean, double std) {
    enum { BLOCK = TDM_NORMAL_BLOCK, CHUNK = 256 * BLOCK };
    if (count < BLOCK) {
        for (size_t i = 0; i < count; i++) out[i] = (float)(scalar_normal(rng) * std + mean);
        return;
    }
    size_t whole = count - count % BLOCK;
    for (size_t at = 0; at < whole; at += CHUNK) {
        size_t now = whole - at < CHUNK ? whole - at : CHUNK;
        tdm__rng_rand(rng, out + at, now);
        tdm__normal_blocks(out + at, now / BLOCK, (float)mean, (float)std, rng->profile);
    }
    if (whole < count) {
        /* Like ATen: draws the remaining numbers, then draws the last 16 again. */
        tdm__rng_rand(rng, out + whole, count - whole);
        tdm__rng_rand(rng, out + count - BLOCK, BLOCK);
        tdm__normal_blocks(out + count - BLOCK, 1, (float)mean, (float)std, rng->profile);
    }
}

void tdm__rng_randint(tdm_rng *rng, int64_t *out, size_t count, int64_t low, int64_t high) {
    uint64_t range = (uint64_t)high - (uint64_t)low;
    bool wide = range >= UINT64_C(1) << 28;
    for (size_t i = 0; i < count; i++) {
        uint64_t word = wide ? tdm__rng_u64(rng) : tdm__rng_u32(rng);
        out[i] = (int64_t)(word % range + (uint64_t)low);
    }
}

void tdm__rng_randperm(tdm_rng *rng, int64_t *out, size_t count) {
    for (size_t i = 0; i < count; i++) out[i] = (int64_t)i;
    for (size_t i = 0; i + 1 < count; i++) {
        size_t with = i + tdm__rng_u32(rng) % (count - i);
        int64_t value = out[i];
        out[i] = out[with];
        out[with] = value;
    }
}
