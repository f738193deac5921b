/* Numbers from and to text, and the nearest word. */
#include <stdint.h>

#include "runtime/base/random/rng.h"
#include "runtime/base/text/text.h"
#include "tests/support/tdm_test.h"

static int64_t int_or(const char *text, int64_t otherwise) {
    int64_t value = otherwise;
    return tdm__parse_int(text, &value) ? value : otherwise;
}

TEST(parse_int) {
    CHECK_INT(int_or("0", -9), 0);
    CHECK_INT(int_or("-0", -9), 0);
    CHECK_INT(int_or("+17", -9), 17);
    CHECK_INT(int_or("1_000_000", -9), 1000000);
    CHECK_INT(int_or("9223372036854775807", -9), INT64_MAX);
    CHECK_INT(int_or("-9223372036854775808", -9), INT64_MIN);
    static const char *const bad[] = {"",
                                      " ",
                                      "-",
                                      "+",
                                      "010",
                                      "00",
                                      "1.0",
                                      "1e3",
                                      "0x10",
                                      "1 ",
                                      " 1",
                                      "1_",
                                      "_1",
                                      "1__0",
                                      "--1",
                                      "+-1",
                                      "three",
                                      "1a",
                                      "0_1",
                                      "９",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "99999999999999999999999"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int64_t value = 5;
        if (tdm__parse_int(bad[i], &value)) CHECK_TEXT(bad[i], "something that is refused");
        CHECK_INT(value, 5);
    }
}

TEST(parse_float) {
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0", 0},
                {"1", 1},
                {"-1.5", -1.5},
                {"1e-3", 1e-3},
                {"1.0e-3", 1e-3},
                {".5", 0.5},
                {"5.", 5},
                {"+2E+2", 200},
                {"1e-400", 0},
                {"0.1", 0.1},
                {"1.7976931348623157e308", 1.7976931348623157e308},
                {"5e-324", 5e-324},
                {"007.5", 7.5}};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        double value = -77;
        CHECK(tdm__parse_float(good[i].text, &value));
        CHECK(value == good[i].value);
    }
    static const char *const bad[] = {"",     ".",        "-",      "e5",   "1e",   "1e+", "nan",   "inf",
                                      "-inf", "infinity", "0x1p3",  "1,5",  "1 ",   " 1",  "1.2.3", "1e5.0",
                                      "1_0",  "1e309",    "-1e309", ".nan", ".inf", "1f"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        double value = -77;
        if (tdm__parse_float(bad[i], &value)) CHECK_TEXT(bad[i], "something that is refused");
        CHECK(value == -77);
    }
}

TEST(parse_bool) {
    bool value = false;
    CHECK(tdm__parse_bool("true", &value) && value);
    CHECK(tdm__parse_bool("false", &value) && !value);
    CHECK(!tdm__parse_bool("True", &value) && !tdm__parse_bool("yes", &value) && !tdm__parse_bool("1", &value) &&
          !tdm__parse_bool("", &value) && !tdm__parse_bool("true ", &value));
}

TEST(print_float) {
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0, "0"},
        {-0.0, "-0"},
        {1, "1"},
        {-1, "-1"},
        {64, "64"},
        {0.1, "0.1"},
        {0.25, "0.25"},
        {0.01, "0.01"},
        {0.015, "0.015"},
        {0.001, "1.0e-3"},
        {0.0015, "1.5e-3"},
        {1e-8, "1.0e-8"},
        {-3.25e-5, "-3.25e-5"},
        {100, "100"},
        {1200, "1200"},
        {123456.789, "123456.789"},
        {1e14, "100000000000000"},
        {999999999999999, "999999999999999"},
        {1e15, "1.0e+15"},
        {1.5e300, "1.5e+300"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.0 / 3, "0.3333333333333333"},
        {2.0 / 3, "0.6666666666666666"},
        {5e-324, "5.0e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {NAN, ".nan"},
        {INFINITY, ".inf"},
        {-INFINITY, "-.inf"},
        {0.999, "0.999"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[32];
        tdm__print_float(text, cases[i].value);
        CHECK_TEXT(text, cases[i].text);
    }
}

/* Random bit patterns, and random short decimals, come back as the same number and never longer than 17 digits. */
TEST(print_float_reads_back) {
    tdm_rng rng;
    tdm__rng_seed(&rng, 7, TDM_RNG_TORCH_AVX2);
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = tdm__rng_u64(&rng);
        double value, back = 0;
        if (i % 2 == 0)
            memcpy(&value, &bits, sizeof(value));
        else
            value = (double)(bits % 100000) / (double)(1 + (bits >> 40) % 1000);
        if (!isfinite(value)) continue;
        char text[40];
        memset(text, 'x', sizeof(text));
        tdm__print_float(text, value);
        CHECK(strlen(text) < 32);
        CHECK(text[32] == 'x');
        CHECK(tdm__parse_float(text, &back));
        if (memcmp(&value, &back, sizeof(value)) != 0) CHECK_TEXT(text, "the same number");
    }
}

TEST(distance) {
    CHECK_INT(tdm__text_distance("", ""), 0);
    CHECK_INT(tdm__text_distance("", "abc"), 3);
    CHECK_INT(tdm__text_distance("kitten", "sitting"), 3);
    CHECK_INT(tdm__text_distance("kernel", "kernle"), 1);
    CHECK_INT(tdm__text_distance("ca", "abc"), 3); /* a swapped pair is not edited again */
    CHECK_INT(tdm__text_distance("adamw", "adam"), 1);
    char long_word[300];
    memset(long_word, 'a', 299);
    long_word[299] = '\0';
    CHECK(tdm__text_distance(long_word, "b") > 0);
}

TEST(nearest) {
    static const char *const words[] = {"learning_rate", "momentum", "sgd", "adam", "adamw", "lr"};
    CHECK_TEXT(tdm_text_nearest("lerning_rate", words, 6), "learning_rate");
    CHECK_TEXT(tdm_text_nearest("learning-rate", words, 6), "learning_rate");
    CHECK_TEXT(tdm_text_nearest("momentmu", words, 6), "momentum");
    CHECK_TEXT(tdm_text_nearest("SGD", words, 6), "sgd");
    CHECK_TEXT(tdm_text_nearest("adm", words, 6), "adam");
    CHECK_TEXT(tdm_text_nearest("adam", words, 6), "adam");
    CHECK(tdm_text_nearest("cosine", words, 6) == NULL);
    CHECK(tdm_text_nearest("x", words, 6) == NULL);
    CHECK(tdm_text_nearest("", words, 6) == NULL);
    CHECK(tdm_text_nearest("sgd", words, 0) == NULL);
}

/* What is passed over without being measured is never the nearest. */
TEST(nearest_is_nearest) {
    static const char *const words[] = {"eval",  "every",  "lr",       "min_lr",   "betas",
                                        "batch", "global", "momentum", "dampening"};
    enum { WORDS = sizeof(words) / sizeof(words[0]) };
    tdm_rng rng;
    tdm__rng_seed(&rng, 5, TDM_RNG_TORCH_AVX2);
    for (int trial = 0; trial < 5000; trial++) {
        char word[32];
        int length = snprintf(word, sizeof(word), "%s", words[tdm__rng_u32(&rng) % WORDS]), best;
        for (uint32_t edits = tdm__rng_u32(&rng) % 4; edits > 0; edits--)
            word[tdm__rng_u32(&rng) % (uint32_t)length] = "abelmrtv_"[tdm__rng_u32(&rng) % 9];
        const char *nearest = NULL;
        best = length / 3 > 1 ? length / 3 : 1;
        for (int i = 0; i < WORDS; i++) {
            int distance = tdm__text_distance(word, words[i]);
            if (distance >= length || (nearest == NULL ? distance > best : distance >= best)) continue;
            best = distance;
            nearest = words[i];
        }
        CHECK(tdm_text_nearest(word, words, WORDS) == nearest);
    }
}

TEST_MAIN(RUN(parse_int); RUN(parse_float); RUN(parse_bool); RUN(print_float); RUN(print_float_reads_back);
          RUN(distance); RUN(nearest); RUN(nearest_is_nearest);)
