#!/usr/bin/env bash
# The preset `small`: a library of less than 1 MB that trains, and refuses what it is without.
#   small.sh CMAKE C-COMPILER SOURCE-FOLDER BUILD-FOLDER
set -euo pipefail
cmake=$1 cc=$2 source=$3 build=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
library=$build/lib/libtandem.so
say() { # COMMAND...: its output only if it fails
    "$@" >"$work/log" 2>&1 || { echo "small: $*"; cat "$work/log"; exit 1; }
}

say "$cmake" -S "$source" --preset small -B "$build" -DCMAKE_C_COMPILER="$cc"
say "$cmake" --build "$build" --target tandem
say "$cc" -std=c11 -Wall -Wextra -Werror -I"$source/runtime/include" "$source/tests/api/small_program.c" \
    -o "$work/program" -L"$build/lib" -ltandem -Wl,-rpath,"$build/lib"
TANDEM_MODULE_PATH= "$work/program" "$work"
cp "$library" "$work/stripped" && strip "$work/stripped"
bytes=$(stat -c %s "$work/stripped")
[ "$bytes" -lt 1000000 ] || { echo "small: the library has $bytes bytes, wanted less than 1000000"; exit 1; }
echo "small: $bytes bytes"
