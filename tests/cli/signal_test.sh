# Signals: one means finish the step and save, two mean now; nobody survives his parent; a dead rank is named.
. "$(dirname "$0")/support.sh"
toy
long() { "$tandem" train "$work/toy.yaml" train.steps=2000000 "checkpoint.every=200 steps" "$@" >"$out" 2>"$err" </dev/null & pid=$!; }
stepping() { [ -e "$1/checkpoints/latest" ]; }
children() { cat /proc/"$pid"/task/*/children 2>/dev/null; }
ends_with() { # CODE: the last background process, within its time
    local got=0
    wait "$pid" || got=$?
    [ "$got" -eq "$1" ] || { fail "status $got, wanted $1"; cat "$err"; }
}
nobody() { [ -z "$(left_over)" ]; }

# However late the signal came on a busy machine: what it cost to get there is steps, not checkpoints.
rare=("checkpoint.every=1000000 steps" "eval.every=1000000 steps")
for mode in single dp ddp; do
    long --mode $mode --run-dir "$mode"
    eventually stepping $mode
    same "$(json $mode/status.json pid)" $pid "pid of $mode, in status.json and"
    kill -TERM $pid
    ends_with 75
    has "$err" "stopped on request"
    has "$out" "to continue:"
    same "$(json $mode/status.json exit_code)" 75 "exit_code of $mode"
    same "$(json $mode/summary.json exit_reason)" stopped "exit_reason of $mode"
    code 0 "$tandem" ckpt verify $mode
    # what was stopped and goes on ends with the bits of what never stopped
    at=$(json $mode/summary.json step)
    code 0 "$tandem" train toy.yaml --mode $mode --run-dir $mode train.steps=$((at + 7)) --quiet
    code 0 "$tandem" train toy.yaml --mode $mode --run-dir $mode-straight train.steps=$((at + 7)) --quiet "${rare[@]}"
    same "$(json $mode/summary.json params_xxh3)" "$(json $mode-straight/summary.json params_xxh3)" "params of $mode"
done

# SIGINT to the parent alone; one wish may come as several signals
long --mode ddp --run-dir int
eventually stepping int
kill -INT $pid
kill -INT $pid
ends_with 75

# SIGTERM to a single rank stops the whole job, with a checkpoint
long --mode ddp --run-dir one
eventually stepping one
set -- $(children)
kill -TERM "$1"
ends_with 75

# a rank that is killed ends the job at once, however rare heartbeats are, and is named
long --mode ddp --run-dir killed parallel.ddp.heartbeat=10m
eventually stepping killed
set -- $(children)
before=$(date +%s%N)
kill -KILL "$2"
ends_with 137
[ $((($(date +%s%N) - before) / 1000000)) -lt 100000 ] || fail "a killed rank was noticed late"
has "$err" "was killed by signal 9 (SIGKILL)"
has "$err" "pid $2"
same "$(grep -c 'error:' "$err")" 1 "errors told"
code 0 "$tandem" ckpt verify killed

# the parent killed: no orphans
long --mode ddp --run-dir orphan
eventually stepping orphan
kill -KILL $pid
wait $pid 2>/dev/null
eventually nobody

# two signals, apart: now. On a busy machine two may arrive as one.
long --mode single --run-dir twice model.input=2048 data.train.samples=4096 train.batch.per_device=4096 model.layers='[{linear: 2048}, {linear: 2048}, {linear: 4}]'
eventually grep -q "finishes the step" "$err"
kill -TERM $pid
again() { sleep 0.5; kill -TERM $pid 2>/dev/null; gone; }
gone() { case $(cat /proc/$pid/stat 2>/dev/null) in "" | *") Z "*) return 0 ;; *) return 1 ;; esac; }
eventually again
got=0
wait $pid || got=$?
case $got in 143 | 75) ;; *) fail "status $got after two signals" ;; esac
same "$(left_over)" "" "processes left over"
