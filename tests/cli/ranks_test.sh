# Several ranks: started by the command, their errors told once and by name, and torchrun's way of starting them.
. "$(dirname "$0")/support.sh"
toy

code 0 "$tandem" train toy.yaml --mode ddp --run-dir a
has "$err" "ddp, 2 ranks"
[ -e a/logs/rank-1.log ] || fail "no log of rank 1"
same "$(grep -c 'tandem 0' "$err")" 1 "banners"
code 0 "$tandem" train toy.yaml --mode dp parallel.dp.scatter=strided --run-dir b
same "$(json a/summary.json params_xxh3)" "$(json b/summary.json params_xxh3)" "dp and ddp"
code 0 "$tandem" train toy.yaml --mode ddp parallel.device_ids='[0, 1, 2]' parallel.ddp.timeout=null --run-dir c --steps 5
has "$err" "8 x 3 = 24"
code 0 "$tandem" train toy.yaml --mode ddp parallel.device_ids='[0]' --run-dir d --steps 5
has "$err" "ddp, 1 rank x"
same "$(left_over)" "" "processes left over"

# an error of the job is told once, with the rank, and its code is the parent's
code 9 "$tandem" train toy.yaml --mode ddp optimizer.lr=1e6 optimizer.type=sgd --run-dir e
same "$(grep -c 'tandem: error' "$err")" 1 "errors told"
has "$err" "[rank "

# ranks from outside: torchrun's variables, two processes, one host
port=$((20000 + $$ % 20000))
for rank in 0 1; do
    RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
        TORCHELASTIC_RUN_ID="cli-$$" "$tandem" train toy.yaml --mode ddp --run-dir f >"rank-$rank.out" 2>"rank-$rank.err" </dev/null &
    pids[rank]=$!
done
wait "${pids[0]}" || fail "rank 0 under torchrun's variables: $(cat rank-0.err)"
wait "${pids[1]}" || fail "rank 1 under torchrun's variables: $(cat rank-1.err)"
has rank-0.err "torchrun"
same "$(json f/status.json pid)" "${pids[0]}" "pid in status.json, rank 0's"
same "$(wc -c <rank-1.out)" 0 "stdout of rank 1"
same "$(json a/summary.json params_xxh3)" "$(json f/summary.json params_xxh3)" "own ranks and torchrun's"

# data of the same size and shape of which one byte is another: found before step 1, on every rank
code 0 "$tandem" data make d0 --format idx --samples 60 --seed 3
cp -r d0 d1
printf '\x05' | dd of=d1/images-idx3-ubyte bs=1 seek=804 conv=notrunc status=none
cat >digits.yaml <<'YAML'
tandem: 1
model: {input: [1, 28, 28], layers: [flatten, {linear: 10}]}
data: {train: {format: idx, images: d0/images-idx3-ubyte, labels: d0/labels-idx1-ubyte}, transform: [to_float]}
optimizer: {type: sgd, lr: 0.1}
train: {epochs: 1, batch: {per_device: 10}}
parallel: {mode: ddp}
run: {dir: null}
YAML
for rank in 0 1; do
    RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((port + 1)) \
        "$tandem" train digits.yaml data.train.images=d$rank/images-idx3-ubyte >"rank-$rank.out" 2>"rank-$rank.err" </dev/null &
    pids[rank]=$!
done
for rank in 0 1; do
    status=0
    wait "${pids[rank]}" || status=$?
    same "$status" 7 "status of rank $rank"
    has "rank-$rank.err" "ranks differ in data.train (all samples' bytes): rank 1 has "
    hasnt "rank-$rank.err" "step 1"
done

# a step whose labels are all ignored has no loss, which is told, whatever ranks average
cp -r d0 d2
{ head -c 8 d0/labels-idx1-ubyte; head -c 60 /dev/zero; } >d2/labels-idx1-ubyte
for average in samples ranks; do
    code 0 "$tandem" train digits.yaml 'parallel.device_ids=[0, 1]' data.train.labels=d2/labels-idx1-ubyte \
        loss.ignore_index=0 parallel.ddp.average=$average 'log.every=1 steps' --run-dir ignored-$average
    has "$err" "step 1: every label of its batch is loss.ignore_index"
    same "$(grep -c '"loss": *null' ignored-$average/metrics.jsonl)" 3 "steps without a loss, average $average"
done

# the launcher's own variables, set by somebody else
TANDEM_PARENT=12x code 2 "$tandem" train toy.yaml --run-dir g
has "$err" "TANDEM_PARENT must be a process id, got '12x'"
for fd in "" -1 1.0 99999999999 987; do
    TANDEM_RANK=0 TANDEM_WORLD=2 TANDEM_LAUNCH_FD=1 TANDEM_REPORT_FD=$fd code 2 "$tandem" train toy.yaml --run-dir g
    has "$err" "TANDEM_REPORT_FD must be an open descriptor, got '$fd'"
done
[ -e g ] && fail "a run directory was made by a process that is no rank"

RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port code 2 "$tandem" train toy.yaml --mode dp --run-dir g
