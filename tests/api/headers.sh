#!/usr/bin/env bash
# Every public header alone, as strict C11, C17 and C++17, in a program that asks for no extensions; the samples as C11
# and C++17; and a C++ program that takes the address of every public function and links the shared library.
#   headers.sh C-COMPILER C++-COMPILER SOURCE-FOLDER LIBRARY-FOLDER
set -euo pipefail
cc=$1 cxx=$2 source=$3 libraries=$4
include=$source/runtime/include
warnings="-Wall -Wextra -Werror -Wpedantic -Wshadow -Wconversion -Wundef"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

try() { # NAME COMPILER...: the program of standard input
    local name=$1
    shift
    "$@" $warnings -I"$include" -fsyntax-only - 2>"$work/said" || { echo "headers: $name:"; cat "$work/said"; bad=1; }
}

headers=$(cd "$include" && find tandem -name '*.h' | sort)
for header in $headers; do
    for standard in c11 c17; do
        printf '#include <%s>\n#include <%s>\nint main(void) { return 0; }\n' "$header" "$header" |
            try "$header as $standard" "$cc" -x c -std=$standard -pedantic
    done
    [ -z "$cxx" ] || printf '#include <%s>\nint main() { return 0; }\n' "$header" |
        try "$header as C++17" "$cxx" -x c++ -std=c++17 -pedantic
done

# A reader of an installed header has the other headers and the pages, not the sources.
! grep -rnE '\b(runtime|ops|modes|config|tools|tests)/' "$include/tandem" | grep -v 'runtime/docs/' ||
    { echo "headers: these lines name files that are not installed"; bad=1; }

# The samples are for programs in both languages.
for name in own_op/swish embed_c/{embed,service,device,desktop}; do
    sample=$source/samples/$name.c
    try "$name.c as C11" "$cc" -x c -std=c11 -pedantic -I"${sample%/*}" <"$sample"
    [ -z "$cxx" ] || try "$name.c as C++17" "$cxx" -x c++ -std=c++17 -pedantic -I"${sample%/*}" <"$sample"
done

if [ -n "$cxx" ]; then
    {
        for header in $headers; do echo "#include <$header>"; done
        echo 'int main() {'
        echo '    tdm_run_options options = TDM_RUN_OPTIONS_INIT;'
        echo '    const void *all[] = {&options,'
        sed -nE 's/.*TDM_API.*\b(tdm_[a-z0-9_]+)\(.*/        reinterpret_cast<const void *>(\1),/p' "$include"/tandem/*.h
        echo '    };'
        echo '    for (const void *one : all) if (one == nullptr) return 1;'
        echo '    return tdm_status_name(TDM_OK)[0] == '"'O'"' ? 0 : 1;'
        echo '}'
    } >"$work/all.cpp"
    "$cxx" -std=c++17 -pedantic $warnings -I"$include" "$work/all.cpp" -o "$work/all" -L"$libraries" -ltandem \
        -Wl,-rpath,"$libraries" && "$work/all" || { echo "headers: the C++ program failed"; bad=1; }
fi
if [ -n "$cxx" ]; then
    "$cxx" -std=c++17 -pedantic $warnings -I"$include" "$source/tests/api/throws.cpp" -o "$work/throws" -L"$libraries" \
        -ltandem -Wl,-rpath,"$libraries" && "$work/throws" "$work" || { echo "headers: throws.cpp failed"; bad=1; }
fi
[ $bad -eq 0 ] && echo "headers: $(echo "$headers" | wc -l) headers, each alone"
exit $bad
