/* Messages for broken text: wrong encodings, and libyaml's errors. */
#include "config/yaml_words.h"

#include <string.h>

#include "runtime/base/text/utf8.h"

static const struct {
    const char *problem; /* a part of libyaml's message */
    bool at_context;     /* the fault is where the construct began, not where the scanner stopped */
    const char *sentence, *hint;
} translations[] = {
    {"could not find expected ':'", true, "this line has no ':' after its key",
     "write `key: value`, with a space after the ':'"},
    {"mapping values are not allowed", false, "a ':' where no key is allowed",
     "check the indentation; quote a value that contains ': '"},
    {"did not find expected key", false, "this line does not fit the mapping around it",
     "begin all keys of a mapping in the same column"},
    {"did not find expected '-' indicator", false, "this line does not fit the list around it",
     "begin all items of a list with '-' in the same column"},
    {"block sequence entries are not allowed", false, "a list item '-' where no list is allowed",
     "begin the list on the line below its key"},
    {"did not find expected ',' or ']'", true, "the '[' opened here is not closed", "close it with ']'"},
    {"did not find expected ',' or '}'", true, "the '{' opened here is not closed", "close it with '}'"},
    {"found unexpected end of stream", true, "the quote opened here is not closed", "close it with the same quote"},
    {"found unexpected document indicator", true, "the quote opened here is not closed",
     "close it with the same quote"},
    {"did not find expected node content", false, "a value is missing here",
     "remove the ',' or write the value; write null for nothing"},
    {"did not find expected <document start>", false, "the file goes on after its end",
     "begin the top-level keys in column 1, and remove any text before the first key"},
    {"did not find URI escape octet", false, "an invalid tag", "quote a value that begins with '!'"},
    {"found unknown escape character", false, "an unknown escape after the '\\'",
     "use single quotes, or '\\\\' for one backslash"},
    {"found undefined tag handle", false, "a value that begins with '!'", "quote it"},
    {"found unknown directive name", false, "a line that begins with '%'", "quote the value"},
    {"did not find expected alphabetic or numeric character", false, "a '*' or '&' that names nothing",
     "quote a value that begins with '*' or '&'"},
    {"simple keys", false, "a key where no key is allowed", "check the indentation"},
};

/* The byte at a position; 0 at the end of a line. */
static char char_at(tdm_fault_list *faults, tdm_position at) {
    const char *bytes, *stop, *end = at.text->bytes + at.text->count;
    if (!tdm__position_bytes(faults, at, &bytes, &stop)) return '\0';
    for (int column = 1; column < at.column && bytes < end && *bytes != '\n'; column++) {
        for (bytes++; bytes < end && !tdm__utf8_begins(*bytes);) bytes++;
    }
    return bytes < end && *bytes != '\n' ? *bytes : '\0';
}

static void add_char_fault(tdm_position at, tdm_fault_list *faults) {
    char found = char_at(faults, at);
    if (found == '\t') {
        tdm__fault_add(faults, TDM_FAULT_SYNTAX, at, "", "use spaces",
                       "a tab; YAML allows only spaces for indentation");
    } else {
        tdm__fault_add(faults, TDM_FAULT_SYNTAX, at, "", "quote the value", "the character '%c' cannot begin a value",
                       found == '\0' ? '?' : found);
    }
}

/* True if the indentation of the line has a tab, the usual cause of a wrong indentation. */
static bool is_indented_with_tab(tdm_fault_list *faults, tdm_position at, tdm_position *tab) {
    const char *bytes, *stop, *end = at.text->bytes + at.text->count;
    if (!tdm__position_bytes(faults, at, &bytes, &stop)) return false;
    for (int column = 1; column <= at.column && bytes < end; column++, bytes++) {
        *tab = (tdm_position){at.text, at.line, column};
        if (*bytes != ' ') return *bytes == '\t';
    }
    return false;
}

void tdm__yaml_explain_error(const yaml_parser_t *parser, tdm_position problem, tdm_position context,
                             tdm_fault_list *faults) {
    const char *text = parser->problem != NULL ? parser->problem : "unreadable text";
    tdm_position tab;
    if (parser->error == YAML_READER_ERROR) {
        tdm__fault_add(faults, TDM_FAULT_ENCODING, problem, "", "save the file as plain UTF-8 text",
                       "the control character 0x%02X near here is not allowed in YAML",
                       (unsigned)parser->problem_value);
        return;
    }
    if (is_indented_with_tab(faults, problem, &tab)) {
        add_char_fault(tab, faults);
        return;
    }
    if (strstr(text, "found character that cannot start any token") != NULL) {
        add_char_fault(problem, faults);
        return;
    }
    bool has_context = parser->context != NULL && (parser->context_mark.line != 0 || parser->context_mark.column != 0 ||
                                                   parser->context_mark.index != 0 || problem.line == 1);
    for (size_t i = 0; i < sizeof(translations) / sizeof(translations[0]); i++) {
        if (strstr(text, translations[i].problem) == NULL) continue;
        tdm_position at = translations[i].at_context && has_context ? context : problem;
        const char *hint = tdm__fault_wide_hint(faults, at);
        if (hint[0] == '\0') hint = tdm__fault_wide_hint(faults, problem);
        if (hint[0] == '\0' && strstr(tdm__position_line(faults, problem), "${") != NULL)
            hint = "quote a value that contains ${...}";
        tdm__fault_add(faults, TDM_FAULT_SYNTAX, at, "", hint[0] != '\0' ? hint : translations[i].hint, "%s",
                       translations[i].sentence);
        return;
    }
    tdm__fault_add(faults, TDM_FAULT_SYNTAX, problem, "", tdm__fault_wide_hint(faults, problem),
                   "this is not YAML: %s%s%s", parser->context != NULL ? parser->context : "",
                   parser->context != NULL ? ", " : "", text);
}

/* Line and column of a byte. All bytes before it must be valid UTF-8. */
static tdm_position position_of_byte(const tdm_yaml_text *text, size_t offset) {
    tdm_position at = {text, 1, 1};
    for (size_t i = 0; i < offset; i++) {
        if (text->bytes[i] == '\n') {
            at.line++;
            at.column = 1;
        } else {
            at.column += tdm__utf8_begins(text->bytes[i]);
        }
    }
    return at;
}

static bool refuse_encoding(tdm_yaml_text *text, tdm_position at, tdm_fault_list *faults, const char *message) {
    text->count = 0; /* nothing may be quoted from it: a terminal could not show it */
    tdm__fault_add(faults, TDM_FAULT_ENCODING, at, "", "save the file as UTF-8 in your editor", "%s", message);
    return false;
}

bool tdm__yaml_check_encoding(tdm_yaml_text *text, tdm_fault_list *faults) {
    const unsigned char *bytes = (const unsigned char *)text->bytes;
    size_t bad = 0;
    tdm_position start = {text, 1, 1};
    if (text->count >= 2 && ((bytes[0] == 0xFF && bytes[1] == 0xFE) || (bytes[0] == 0xFE && bytes[1] == 0xFF)))
        return refuse_encoding(text, start, faults,
                               tdm__fault_text(faults,
                                               "the bytes 0x%02X 0x%02X at the start mark UTF-16; this format "
                                               "is UTF-8",
                                               bytes[0], bytes[1]));
    if (text->count >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0) {
        text->bytes += 3;
        text->count -= 3;
        bytes += 3;
    }
    const unsigned char *nul = text->count > 0 ? memchr(bytes, '\0', text->count) : NULL;
    bool is_utf8 = tdm__text_is_utf8(text->bytes, text->count, &bad);
    if (nul != NULL && (is_utf8 || (size_t)(nul - bytes) < bad)) {
        bad = (size_t)(nul - bytes);
        return refuse_encoding(
            text, position_of_byte(text, bad), faults,
            tdm__fault_text(faults, "the byte 0x00 at offset %zu; the file is UTF-16 or not text", bad));
    }
    if (!is_utf8)
        return refuse_encoding(text, position_of_byte(text, bad), faults,
                               tdm__fault_text(faults,
                                               "the byte 0x%02X at offset %zu is not UTF-8; the file may be "
                                               "GBK or Latin-1",
                                               bytes[bad], bad));
    return true;
}
