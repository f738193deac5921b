# Prints a function for each public function of the headers that it reads: `static void call_N(bent *b)`, which calls it
# with a value for each parameter, take_TYPE(b, number, "name") of calls_test.c, and a table of them.
function trim(s) { gsub(/^[ \t]+|[ \t]+$/, "", s); return s }

# "const char *const *" is c_char_pc_p.
function type_name(type) {
    gsub(/const /, "c_", type); gsub(/struct /, "", type); gsub(/\*/, "_p", type); gsub(/const/, "c", type)
    gsub(/ /, "", type)
    return type
}

function split_parameters(text, out,    i, c, depth, count, one) {
    count = 0; one = ""; depth = 0
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (c == "(") depth++
        if (c == ")") depth--
        if (c == "," && depth == 0) { out[++count] = trim(one); one = ""; continue }
        one = one c
    }
    if (trim(one) != "" && trim(one) != "void") out[++count] = trim(one)
    return count
}

function value(parameter, index_,    name, type) {
    if (match(parameter, /\(\*[a-z_]+\)/)) {
        name = substr(parameter, RSTART + 2, RLENGTH - 3)
        return "take_function_" name "(b, " index_ ", \"" name "\")"
    }
    if (sub(/\[[0-9]*\]$/, "", parameter)) sub(/[a-z_0-9]+$/, "*&", parameter)
    match(parameter, /[a-z_0-9]+$/)
    name = substr(parameter, RSTART)
    type = trim(substr(parameter, 1, RSTART - 1))
    return "take_" type_name(type) "(b, " index_ ", \"" name "\")"
}

function declaration(text,    at, head, name, returns, list, count, i, arguments) {
    at = index(text, "(")
    head = trim(substr(text, 1, at - 1))
    match(head, /tdm_[a-z0-9_]+$/)
    name = substr(head, RSTART)
    returns = trim(substr(head, 9, RSTART - 9))
    text = substr(text, at + 1); sub(/\)[^)]*$/, "", text)
    count = split_parameters(text, list)
    for (i = 1; i <= count; i++) arguments = arguments (i > 1 ? ", " : "") value(list[i], i - 1)
    printf "static void call_%d(bent *b) {\n    %s(b, %s(%s));\n}\n", functions, \
        returns == "tdm_status" ? "RETURNS_STATUS" : "RETURNS_OTHER", name, arguments
    names[functions] = name; parameters[functions++] = count
}

BEGIN { functions = 0 }
FNR == 1 { comment = 0; pending = "" }
{
    line = $0
    while (1) { # comments
        if (comment) { at = index(line, "*/"); if (!at) { line = ""; break } line = substr(line, at + 2); comment = 0 }
        at = index(line, "/*"); if (!at) break
        rest = substr(line, at + 2); end = index(rest, "*/")
        if (end) line = substr(line, 1, at - 1) substr(rest, end + 2); else { line = substr(line, 1, at - 1); comment = 1; break }
    }
    if (pending == "" && line !~ /^TDM_API /) next
    pending = trim(pending " " trim(line))
    if (pending ~ /;$/) { sub(/;$/, "", pending); declaration(pending); pending = "" }
}
END {
    print "static const callee callees[] = {"
    for (i = 0; i < functions; i++) printf "    {\"%s\", call_%d, %d},\n", names[i], i, parameters[i]
    print "};"
}
