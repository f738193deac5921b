/* Patterns of names: what matches, and that long ones end soon. */
#include <string.h>

#include "runtime/base/text/pattern.h"
#include "tests/support/tdm_test.h"

TEST(patterns) {
    static const struct {
        const char *pattern, *name;
        bool matches;
    } cases[] = {
        {"fc1.weight", "fc1.weight", true},
        {"fc1.weight", "fc1.weights", false},
        {"fc1.weight", "fc1.weigh", false},
        {"*", "", true},
        {"*", "layer1.0.conv1", true},
        {"", "", true},
        {"", "a", false},
        {"?", "", false},
        {"?", "a", true},
        {"fc?.*", "fc1.bias", true},
        {"fc?.*", "fc10.bias", false},
        {"*.bias", "layer1.0.bn1.bias", true},
        {"*.bias", "bias", false},
        {"layer1.*", "layer10.weight", false},
        {"a*b*c", "aXbYbZc", true},
        {"a*b*c", "aXcYb", false},
        {"**a", "a", true},
        {"*a*", "bbb", false},
        {"*.weight*", "x.weight", true},
        {"[a]*", "abc", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (tdm__pattern_matches(cases[i].pattern, cases[i].name) != cases[i].matches)
            CHECK_TEXT(cases[i].pattern, cases[i].name);
}

TEST(the_first_of_several) {
    const tdm_texts patterns = {.count = 3, .item = {"fc*", "*.bias", "*"}};
    CHECK_INT(tdm__patterns_find(&patterns, "fc.bias"), 0);
    CHECK_INT(tdm__patterns_find(&patterns, "conv.bias"), 1);
    CHECK_INT(tdm__patterns_find(&patterns, "conv.weight"), 2);
    CHECK_INT(tdm__patterns_find(&(const tdm_texts){.count = 0}, "a"), -1);
}

/* Each star alone would double the tries of the one before. */
TEST(many_stars) {
    char pattern[2001], name[2001];
    for (int i = 0; i < 2000; i++) pattern[i] = i % 2 == 0 ? '*' : 'a', name[i] = 'a';
    pattern[2000] = name[2000] = '\0';
    CHECK(tdm__pattern_matches(pattern, name));
    pattern[1999] = 'b';
    CHECK(!tdm__pattern_matches(pattern, name));
}

TEST_MAIN(RUN(patterns); RUN(the_first_of_several); RUN(many_stars);)
