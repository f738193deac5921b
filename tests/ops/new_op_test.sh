#!/usr/bin/env bash
# tools/new_op on a copy of the sources: an op, an activation, an optimizer and a loss are one folder and one line each,
# which are formatted, configure, build (for the emulated CUDA, too) and pass the tests of their kind; wrong names are
# refused.
#   new_op_test.sh SOURCE_FOLDER BUILD_FOLDER CMAKE COMPILER
set -euo pipefail
source=$1 build=$2 cmake=$3 compiler=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'new_op_test: %s\n' "$*" >&2; exit 1; }

mkdir "$work/tree"
cp -R "$source"/{CMakeLists.txt,config,modes,ops,runtime,samples,tests,tools} "$work/tree/"
cd "$work/tree"
tools/new_op probe_op >/dev/null
tools/new_op --activation probe_plain >/dev/null
tools/new_op --activation probe_attr alpha >../said
for claim in 'probe_attr.c:.*torch.nn.LeakyReLU' 'probe_attr.c:.*RANGE(' 'probe_attr.c:.*HELP('; do
    grep -q "$claim" ../said || fail "new_op does not say that $claim is still to change"
done
tools/new_op --optim probe_optim >/dev/null
tools/new_op --loss probe_loss >/dev/null
diff -rq "$source/ops" ops >../changes || true
[ "$(wc -l <../changes)" = 8 ] || fail "more than a folder and a line each: $(cat ../changes)"
for list in ops:3 optims:1 losses:1; do
    [ "$(diff "$source/ops/${list%:*}.def" ops/${list%:*}.def | grep -c '^>')" = ${list#*:} ] || fail "${list%:*}.def has other lines"
done
copies=(ops/probe_{op,plain,attr} ops/optim/probe_optim ops/loss/probe_loss)
! grep -rwE 'relu|silu|leaky_relu|sgd|mse|TDM_(OPS_)?(RELU|SILU|LEAKY_RELU|SGD|MSE)_H|negative_slope|also_called' "${copies[@]}" ||
    fail "a copy has the name of what it was copied from"
! grep -rqi onnx "${copies[@]}" || fail "a copy is written into ONNX files as what it was copied from"
grep -q ' alpha;' ops/probe_attr/probe_attr.h || fail "probe_attr has no attribute alpha"
if command -v clang-format >/dev/null; then
    find "${copies[@]}" -name '*.[ch]' -exec clang-format --dry-run -Werror {} + || fail "a copy is not formatted"
fi
! said=$(tools/new_op --layer x 2>&1) || fail "new_op took --layer"
[[ $said == *"unknown option '--layer'"* ]] || fail "of an unknown option new_op says: $said"
! tools/new_op --activation probe_act Alpha 2>/dev/null || fail "new_op took the attribute Alpha"
for kind in '' --activation --optim --loss; do
    for wrong in probe_op relu mse adam probe_optim Probe_op 'a b' ../x ''; do
        ! tools/new_op $kind "$wrong" 2>/dev/null || fail "new_op $kind took '$wrong'"
    done
done

# A name that is a word of other rooms, too, needs no exception.
tools/new_op scale >/dev/null
tools/check_op_names >../log || fail "an op of the name scale is found elsewhere: $(head -3 ../log)"
rm -r ops/scale && sed -i '/^TDM_OP(scale)$/d' ops/ops.def

# The lists that CMake makes have it; a program of the new table, its kernels and the test links with the library as it is.
"$cmake" -S . -B ../build -G Ninja -DCMAKE_C_COMPILER="$compiler" -DTDM_WITH_CUDA=OFF -DTDM_WITH_NCCL=OFF -DTDM_INSTALL=OFF >../log 2>&1 ||
    fail "it does not configure: $(cat ../log)"
for row in {cuda,dnnl}_kernels:TDM_KERNEL:probe_{plain,attr} cuda_kernels:TDM_KERNEL:probe_op cuda_optims:TDM_OPTIM:probe_optim cuda_losses:TDM_LOSS:probe_loss; do
    IFS=: read -r file macro name <<<"$row"
    grep -qx "$macro($name)" ../build/generated/ops/$file.def || fail "$file.def does not know $name"
done
for name in probe_{plain,attr}; do
    grep -q " EACH($name)" ../build/generated/ops/activations.h || fail "activations.h does not know $name"
done
mapfile -t objects < <(grep -oE '^build [^ ]*(/ops/ops\.c|(probe_(op|plain|attr)(_ref)?|probe_optim|probe_optim_lanes|probe_loss)\.(c|cu))\.o:' ../build/build.ninja |
    sed 's/^build //; s/:$//')
for file in probe_{op,plain,attr}_ref.c probe_optim_lanes.c probe_loss.c; do
    grep -q "/$file\.o" <<<"${objects[*]}" || fail "the build does not know $file"
done
"$cmake" --build ../build --target "${objects[@]}" >../log 2>&1 || fail "it does not build: $(tail -20 ../log)"
[ ! -e "$build/tests/fake/cuda" ] || grep -q '/probe_optim\.cu\.o' <<<"${objects[*]}" || fail "the .cu are not built for the emulated CUDA"
grep -q probe_loss_cases ../build/generated/ops/loss_cases.def || fail "the tests do not know the cases of probe_loss"

# The tests, with the new tables and the library as it is.
cd ../build
mapfile -t objects < <(printf '%s\n' "${objects[@]}" | grep -v '\.cu\.o$')
link() { # PROGRAM SOURCE...
    (cd ../tree && "$compiler" -std=gnu17 -O1 -D_GNU_SOURCE -I. -Iruntime/include -I../build/generated -ffp-contract=off -o "../$1" \
        "${@:2}" "${objects[@]/#/../build/}" "$build/lib/libtandem.a" -lyaml -lxxhash -ldl -lm -pthread)
    ../"$1" >../out 2>&1 || fail "$1 does not pass: $(cat ../out)"
}
link conformance tests/ops/op_conformance.c tests/ops/op_conform.c tests/ops/op_driver.c tests/ops/op_compare.c tests/ops/op_data.c
link optim_test tests/ops/optim_test.c
link loss_test tests/ops/loss_test.c
echo "ok     new_op"
