# support.sh - what the tests of the command share. Each test sources it and runs checks; if one fails, its status is 1.
#   code N COMMAND...     runs it; its exit status must be N; $out and $err are the files with what it wrote
#   has FILE TEXT         the text is in the file; hasnt: it is not
#   golden NAME FILE      the file is as golden/NAME; UPDATE_GOLDEN=1 writes it instead
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tandem=${TANDEM:?the path of the command}
work=$(mktemp -d)
trap leave EXIT
cd "$work" || exit 1
out=$work/stdout
err=$work/stderr
failures=0
unset NO_COLOR CLICOLOR_FORCE COLUMNS TANDEM_LOG RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT

leave() {
    local status=$?
    rm -rf "$work"
    [ "$failures" -eq 0 ] && exit "$status"
    echo "$failures checks failed"
    exit 1
}

fail() {
    failures=$((failures + 1))
    echo "FAILED: $*"
}

code() {
    local want=$1 got=0
    shift
    "$@" >"$out" 2>"$err" </dev/null || got=$?
    [ "$got" -eq "$want" ] && return
    fail "status $got, wanted $want: $*"
    sed 's/^/  | /' "$out" "$err" | tail -20
}

has() {
    grep -qF -- "$2" "$1" && return
    fail "no '$2' in $(basename "$1"):"
    sed 's/^/  | /' "$1" | head -20
}

hasnt() {
    grep -qF -- "$2" "$1" || return 0
    fail "'$2' is in $(basename "$1")"
}

same() {
    [ "$1" = "$2" ] || fail "${3:-values} differ: '$1' and '$2'"
}

golden() {
    if [ -n "${UPDATE_GOLDEN:-}" ]; then
        cp "$2" "$here/golden/$1"
    elif ! diff -u "$here/golden/$1" "$2"; then
        fail "golden/$1 differs"
    fi
}

# A value of one-line JSON without nesting troubles: json FILE KEY
json() {
    grep -oE "\"$2\": ?(\"[^\"]*\"|[^,}]*)" "$1" | head -1 | sed -E 's/^"[^"]*": ?//; s/^"(.*)"$/\1/'
}

# Processes that have this test's folder in their arguments.
left_over() {
    local file
    for file in /proc/[0-9]*/cmdline; do
        case $file in /proc/$$/*) continue ;; esac
        if tr '\0' '\n' 2>/dev/null <"$file" | grep -qF -- "$work/"; then dirname "$file"; fi
    done
}

# Waits until a command succeeds, at most about three minutes: that is a hang.
eventually() {
    local i
    for i in $(seq 3600); do
        "$@" && return
        sleep 0.05
    done
    fail "never: $*"
    return 1
}

# A small job: two linear layers, synthetic data; MORE lines are appended.
toy() {
    cat >toy.yaml <<YAML
tandem: 1
name: toy
seed: 7
model:
  input: 10
  layers:
    - linear: {name: fc1, out: 16}
    - relu
    - linear: {name: fc2, out: 4}
data:
  train: {format: synthetic, samples: 200, classes: 4}
  eval: {format: synthetic, samples: 50, classes: 4, seed: 9}
loss: cross_entropy
optimizer: {type: adam, lr: 1e-3}
train: {steps: 40, batch: {per_device: 8}}
parallel: {mode: single, device_ids: [0, 1]}
log: {every: 10 steps}
YAML
}
