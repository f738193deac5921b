# Two hosts, played on one machine: the ranks that a launcher says are on hosts of their own train over gloo as two ranks
# of one host do. What does not fit ends with a sentence.
. "$(dirname "$0")/support.sh"

"$tandem" doctor | grep -q '^  gloo .* usable' || exit 77 # it is not built
cat >job.yaml <<'Y'
tandem: 1
model: {input: [4], layers: [{linear: {out: 8}}, relu, {linear: {out: 2}}]}
loss: mse
optimizer: {type: sgd, lr: 0.1}
data: {train: {format: synthetic, samples: 40}}
train: {steps: 10, batch: {per_device: 5}}
parallel: {mode: ddp, device_ids: [0, 1]}
Y
params() { sed -n 's/.*params_xxh3 *//p' "$1"; }
# rank N OF [VARIABLE=VALUE...]: one rank on a host of its own
rank() {
    local n=$1 of=$2
    shift 2
    env RANK="$n" WORLD_SIZE="$of" LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 "$@" "$tandem" train job.yaml --run-dir "hosts-$n" \
        parallel.ddp.init_method="file://$PWD/place" parallel.ddp.interface=lo parallel.ddp.timeout=60s \
        >"rank-$n.out" 2>"rank-$n.err"
}
# both STATUS-0 STATUS-1 [VARIABLE=VALUE...]: the variables are rank 1's
both() {
    local wanted="$1 $2" first second
    shift 2
    rank 0 2 A=1 &
    rank 1 "${of:-2}" "$@" && second=0 || second=$?
    wait $! && first=0 || first=$?
    same "$first $second" "$wanted" "status of ranks 0 and 1"
}

code 0 "$tandem" train job.yaml --run-dir one
cp "$out" one.out
both 0 0 A=1
same "$(params rank-0.out)" "$(params one.out)" "parameters of two hosts and of one"
[ -e hosts-1 ] && fail "rank 1 wrote a run directory"
[ -e place ] && fail "rank 0 left its file"

# another world, another secret
of=3 both 2 2 A=1
has rank-0.err "rank 0 was started for 2 ranks, rank 1 for 3"
has rank-1.err "rank 0 was started for 2 ranks, rank 1 for 3"
rank 0 2 A=1 &
rank 1 2 TANDEM_SECRET=wrong && fail "a stranger joined"
has rank-1.err secret
rank 1 2 A=1 || fail "rank 1 could not join after a stranger"
wait $! || fail "rank 0 failed because of a stranger"

# nothing says where to meet
code 2 env RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 "$tandem" train job.yaml --run-dir none
has "$err" "set MASTER_ADDR and MASTER_PORT"
code 2 env RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 "$tandem" train \
    job.yaml --run-dir none parallel.ddp.interface=none0
has "$err" "no network interface 'none0'"
