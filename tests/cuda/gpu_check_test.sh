#!/usr/bin/env bash
# tools/gpu_check packs and runs, on the emulated CUDA: what it packs works in another place, a stage's results are all
# there, and a GPU test that is skipped has failed.
#   gpu_check_test.sh SOURCE BUILD
set -euo pipefail
source=$1 build=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/gpu-check-XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() {
    echo "gpu_check_test: $*" >&2
    exit 1
}

stages=$("$source/tools/gpu_check" --stages)
grep -q "^tests  " <<<"$stages" || fail "--stages does not list the stages"
"$source/tools/gpu_check" --pack "$work/pack" --build "$build" --emulated >"$work/packed" || fail "it does not pack"
! "$source/tools/gpu_check" --pack "$work/half" --build "$work/none" --emulated >"$work/packed" 2>&1 || fail "it packs nothing"
[ ! -e "$work/half" ] || fail "a pack that failed is left half done"
mv "$work/pack" "$work/moved"
pack=$work/moved

# Nothing in it leads back to the build. The emulated libraries and all else lie beside each other.
leads=$(find "$pack" -type f \( -perm -u+x -o -name '*.so*' \) -exec readelf -d {} \; 2>/dev/null |
    sed -n 's/.*R\(UN\)\{0,1\}PATH.*\[\(.*\)\]/\2/p' | tr ':' '\n' | grep -v '^\$ORIGIN' || true)
[ -z "$leads" ] || fail "the pack looks for libraries in $leads"

check=(env -u TANDEM_MODULE_PATH -u TANDEM_CUDA_LIBRARIES -u CUDA_VISIBLE_DEVICES "$pack/gpu_check" --run "$pack" --python python3)
run() { # OUT STAGE...
    local out=$1 code=0
    shift
    "${check[@]}" --out "$out" $(printf -- '--stage %s ' "$@") >"$out.txt" 2>&1 || code=$?
    return $code
}

run "$work/good" tests:loss_cuda_test algorithms:mnist_cnn-tf32 training:bf16 training:bf16-again training:bf16-repeats nccl ||
    { cat "$work/good.txt" && fail "a stage failed"; }
for file in tests.log algorithms.log training.log nccl.log summary.json results.tar.gz; do
    [ -s "$work/good/$file" ] || fail "there is no $file"
done
python3 - "$work/good" <<'PY' || fail "the results do not say what was run"
import json, sys, tarfile
folder = sys.argv[1]
with open(folder + "/summary.json") as f:
    summary = json.load(f)
verdicts = {(s["stage"], i["name"]): i["verdict"] for s in summary["stages"] for i in s["items"]}
assert verdicts[("tests", "loss_cuda_test")] == "ok", verdicts
assert verdicts[("nccl", "one-rank")] == "ok", verdicts
assert all(s["verdict"] == "ok" for s in summary["stages"]), summary
with open(folder + "/algorithms-mnist_cnn-tf32.json") as f:
    layers = json.load(f)["kernels"][0]["layers"]
first = [one for one in layers if one["op"] == "conv2d"][0]["algorithms"]
assert [a["pass"] for a in first] == ["forward", "dw"], first
assert first[0]["algorithm"] == "cuDNN implicit_precomp_gemm" and first[0]["math"] == "tf32", first
assert first[0]["fused"] in ("bias", "bias and relu") and first[0]["workspace_bytes"] > 0, first
with tarfile.open(folder + "/results.tar.gz") as archive:
    assert "summary.json" in archive.getnames() and "tests.log" in archive.getnames()
PY

# Without a GPU tests skip themselves, and that is a failure here.
code=0
CUDA_EMULATED_DEVICES=0 run "$work/none" tests:loss_cuda_test || code=$?
[ $code -eq 1 ] || fail "a skipped test is no failure: $code"
grep -q '"verdict": "FAILED (skipped)"' "$work/none/summary.json" || fail "the summary does not tell of the skipped test"

code=0
run "$work/wrong" nonsense || code=$?
[ $code -eq 2 ] || fail "an unknown stage is taken: $code"

# Every setting that its items pass is one: instead of the command `tandem check` is asked about the same.
mv "$pack/bin/tandem" "$pack/bin/real"
cat >"$pack/bin/tandem" <<'SH'
#!/usr/bin/env bash
if [ -n "${SLEEPS:-}" ]; then
    sleep 1000 &
    echo "$$ $!" >"$SLEEPS"
    wait
fi
config=() settings=()
for word; do
    case $word in
    *.yaml) config+=("$word") ;;
    -*) ;;
    *=*) settings+=("$word") ;;
    esac
done
[ ${#config[@]} -eq 1 ] || exec "${0%/*}/real" "$@"
said=$("${0%/*}/real" check "${config[@]}" "${settings[@]}" 2>&1)
code=$?
echo "$code: $* $(head -1 <<<"$said")" >>"$ASKED"
exit $code
SH
mkdir "$work/bin"
printf '#!/bin/sh\nwhile [ "${1##*/}" != tandem ]; do shift; done\nexec "$@"\n' >"$work/bin/ncu"
chmod +x "$pack/bin/tandem" "$work/bin/ncu"
export ASKED=$work/asked
PATH=$work/bin:$PATH run "$work/settings" algorithms training modes:compare nccl bench profile || true
[ "$(wc -l <"$ASKED")" -ge 27 ] || fail "only these items ask the command: $(cat "$ASKED")"
! grep -v '^0:' "$ASKED" || fail "a stage passes what the command does not take"

# A stage that is cut off says so, and leaves nothing running.
SLEEPS=$work/sleeps "${check[@]}" --out "$work/cut" --stage machine:doctor >"$work/cut.txt" 2>&1 &
cut=$!
eventually() { # COMMAND...
    for _ in $(seq 3000); do ! "$@" || return 0 && sleep 0.1; done
    return 1
}
is_gone() {
    ! kill -0 "$1" 2>/dev/null || grep -q '^State:.[ZX]' "/proc/$1/status" 2>/dev/null
}
eventually test -s "$work/sleeps" || fail "the stage does not begin"
kill -TERM $cut
code=0
wait $cut || code=$?
[ $code -eq 143 ] || fail "cut off by SIGTERM it ends with $code"
for pid in $(cat "$work/sleeps"); do
    eventually is_gone "$pid" || fail "a process of the stage that was cut off is left"
done
python3 - "$work/cut/summary.json" <<'PY' || fail "the summary does not tell of the stage that was cut off"
import json, sys
with open(sys.argv[1]) as f:
    stage = json.load(f)["stages"][0]
assert stage["verdict"] == "cut" and stage["items"][0]["verdict"] == "cut", stage
PY
echo "gpu_check_test: packed, moved, run"
