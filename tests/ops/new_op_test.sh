#!/usr/bin/env bash
# tools/new_op on a copy of the sources: one folder and one line, which configure, build and pass the conformance test;
# wrong names are refused.
#   new_op_test.sh SOURCE_FOLDER BUILD_FOLDER CMAKE COMPILER
set -euo pipefail
source=$1 build=$2 cmake=$3 compiler=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'new_op_test: %s\n' "$*" >&2; exit 1; }

mkdir "$work/tree"
cp -R "$source"/{CMakeLists.txt,config,modes,ops,runtime,samples,tests,tools} "$work/tree/"
cd "$work/tree"
tools/new_op swish >/dev/null
diff -rq "$source/ops" ops >../changes || true
[ "$(wc -l <../changes)" = 2 ] || fail "more than a folder and a line: $(cat ../changes)"
[ "$(diff "$source/ops/ops.def" ops/ops.def | grep -c '^>')" = 1 ] || fail "ops.def has more than one line more"
for wrong in swish relu mse adam Swish 'a b' ../x ''; do
    ! tools/new_op "$wrong" 2>/dev/null || fail "new_op took '$wrong'"
done

# The lists that CMake makes have it; a program of the new table, its kernels and the test links with the library as it is.
"$cmake" -S . -B ../build -G Ninja -DCMAKE_C_COMPILER="$compiler" -DTDM_WITH_CUDA=OFF -DTDM_WITH_NCCL=OFF >../log 2>&1 ||
    fail "it does not configure: $(cat ../log)"
grep -q 'swish_ref\.c' ../build/build.ninja || fail "the build does not know ops/swish"
grep -qx 'TDM_KERNEL(swish)' ../build/generated/ops/cuda_kernels.def || fail "the CUDA module does not know ops/swish"
"$compiler" -std=gnu17 -O1 -D_GNU_SOURCE -I. -Iruntime/include -I../build/generated -ffp-contract=off -o ../conformance \
    ops/ops.c ops/swish/swish.c ops/swish/swish_ref.c tests/ops/op_conformance.c tests/ops/op_conform.c \
    tests/ops/op_driver.c "$build/lib/libtandem.a" -lyaml -lxxhash -ldl -lm -pthread
../conformance >../out 2>&1 || fail "it does not pass: $(cat ../out)"
echo "ok     new_op"
