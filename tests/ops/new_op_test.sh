#!/usr/bin/env bash
# tools/new_op on a copy of the sources: what it makes compiles, the lists hold it once, and wrong names are refused.
#   new_op_test.sh SOURCE_FOLDER COMPILER
set -euo pipefail
source=$1 compiler=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tests" "$work/tools"
cp -R "$source/ops" "$source/runtime" "$work/"
cp -R "$source/tests/ops" "$source/tests/support" "$work/tests/"
cp "$source/tools/new_op" "$work/tools/"
cd "$work"

tools/new_op gelu >/dev/null
for list in ops/ops.def ops/CMakeLists.txt tests/ops/op_cases.h; do
    diff "$source/$list" "$list" >changes || true
    added=$(grep -c '^>' changes || true) removed=$(grep -c '^<' changes || true)
    wanted=1
    [ "$list" != ops/CMakeLists.txt ] || wanted=2
    [ "$added $removed" = "$wanted 0" ] || { echo "$list: $added lines added and $removed removed"; exit 1; }
done
for file in ops/gelu/gelu.c ops/gelu/gelu_ref.c ops/ops.c tests/ops/op_conform.c; do
    "$compiler" -std=gnu17 -Wall -Wextra -Werror -D_GNU_SOURCE -I. -Iruntime/include -fsyntax-only "$file"
done
grep -q 'tdm__gelu_op' ops/gelu/gelu.c
grep -q 'tdm__gelu_ref' ops/gelu/gelu_ref.c
for wrong in gelu relu Gelu 'a b' ../x ''; do
    if tools/new_op "$wrong" 2>/dev/null; then
        echo "new_op took '$wrong'"
        exit 1
    fi
done
echo "ok     new_op"
