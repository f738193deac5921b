# Ranks on several hosts, as a launcher's variables describe them; here all on one machine, which meet in a file and send
# their data over gloo.
. "$(dirname "$0")/support.sh"
[ -e "$TANDEM_MODULE_PATH/libtandem-gloo.so" ] || { echo "skipped: the module gloo is not built"; exit 77; }
unset LOCAL_WORLD_SIZE TANDEM_SECRET TANDEM_SECRET_FILE
toy
meeting=file://$work/meeting

# One rank, with $world and $locals as its launcher would set them: rank NUMBER ARGUMENT...
world=2 locals=1
rank() {
    local number=$1
    shift
    RANK=$number WORLD_SIZE=$world LOCAL_RANK=$((number % locals)) LOCAL_WORLD_SIZE=$locals \
        "$tandem" train toy.yaml --mode ddp "$@" >"$number.out" 2>"$number.err" </dev/null
}

# All ranks; the status of each is in ${status[*]}: all ARGUMENT...
all() {
    local r
    for r in $(seq 0 $((world - 1))); do
        rank "$r" "$@" &
        pids[r]=$!
    done
    for r in $(seq 0 $((world - 1))); do
        status[r]=0
        wait "${pids[r]}" || status[r]=$?
    done
}

# two hosts with a rank each, and two hosts with two, which reduce in shared memory first: the bits of one host
code 0 "$tandem" train toy.yaml --mode ddp --run-dir one2
code 0 "$tandem" train toy.yaml --mode ddp 'parallel.device_ids=[0, 1, 2, 3]' --run-dir one4
all parallel.ddp.init_method="$meeting" --run-dir two2
same "${status[*]}" "0 0" "status of the ranks of two hosts"
same "$(json two2/summary.json params_xxh3)" "$(json one2/summary.json params_xxh3)" "two hosts and one"
has 0.err "ranks started by torchrun; gradients over gloo (several hosts)"
same "$(cat 1.out 1.err)" "" "what rank 1 says"
[ -e meeting ] && fail "the file of the meeting was left"

# over IPv6: the meeting and the data
port=$((20000 + $$ % 10000))
if grep -qs '^0*1 .* lo$' /proc/net/if_inet6; then
    all parallel.ddp.init_method="tcp://[::1]:$port" --run-dir six2
    same "${status[*]}" "0 0" "status of two ranks over IPv6"
    same "$(json six2/summary.json params_xxh3)" "$(json one2/summary.json params_xxh3)" "two hosts over IPv6 and one"
fi

world=4 locals=2
all parallel.ddp.init_method="$meeting" --run-dir two4
same "${status[*]}" "0 0 0 0" "status of the ranks of two hosts with two each"
same "$(json two4/summary.json params_xxh3)" "$(json one4/summary.json params_xxh3)" "two hosts with two ranks each and one"
world=2 locals=1

# only rank 0 needs the checkpoint to go on
all parallel.ddp.init_method="$meeting" --run-dir went --steps 20
rank 1 parallel.ddp.init_method="$meeting" --run-dir elsewhere/deep &
rank 0 parallel.ddp.init_method="$meeting" --run-dir went || fail "rank 0 does not go on: $(cat 0.err)"
wait $! || fail "rank 1 does not go on: $(cat 1.err)"
same "$(json went/summary.json params_xxh3)" "$(json one2/summary.json params_xxh3)" "a run that went on"
# the other host has only its own log
same "$(find elsewhere -type f)" elsewhere/deep/logs/rank-1.log "files of the other host"
same "$(cat 1.err)" "" "what the other host says"

# nothing says where to meet
for r in 0 1; do
    rank $r --run-dir none
    same $? 2 "status of rank $r that knows no place"
    has $r.err "the job has 2 ranks, 1 of them on this host, and nothing says where they meet: set MASTER_ADDR and MASTER_PORT"
done

# the port has another owner
exec {listener}< <(exec python3 -c "import socket, time
s = socket.socket(); s.bind(('', 0)); s.listen(); print(s.getsockname()[1], flush=True); time.sleep(600)")
owner=$!
read -r port <&"$listener"
rank 0 parallel.ddp.init_method="tcp://127.0.0.1:$port" --run-dir none
same $? 7 "status of a rank 0 whose port is taken"
has 0.err "; another program uses the port: take another one"
kill "$owner"

# ranks of two minds about the size of the job: each is told
rank 0 parallel.ddp.init_method="$meeting" --run-dir none &
(world=3 && rank 1 parallel.ddp.init_method="$meeting" --run-dir none)
same $? 2 "status of a rank that counts 3"
wait $!
same $? 2 "status of rank 0, which counts 2"
for r in 0 1; do has $r.err "rank 0 was started for 2 ranks, rank 1 for 3; start all with one world size"; done

# another secret: the stranger is refused, and rank 0 goes on waiting for its own
printf 'the right one' >secret
chmod 600 secret
TANDEM_SECRET_FILE=secret rank 0 parallel.ddp.init_method="$meeting" --run-dir none &
first=$!
TANDEM_SECRET=wrong rank 1 parallel.ddp.init_method="$meeting" --run-dir none
same $? 7 "status of a rank with another secret"
has 1.err "rank 0 refused this rank's secret, or is gone"
rank 1 parallel.ddp.init_method="$meeting" --run-dir none
same $? 7 "status of a rank without a secret"
has 1.err "rank 0 is gone, or has a secret, which this rank lacks: give all ranks the same TANDEM_SECRET_FILE"
TANDEM_SECRET='the right one' rank 1 parallel.ddp.init_method="$meeting" --run-dir none || fail "the right secret: $(cat 1.err)"
wait "$first" || fail "rank 0 with a secret: $(cat 0.err)"
same "$(grep -c "refused a visitor from .*, which does not know the job's secret" 0.err)" 2 "refused visitors"
chmod 644 secret
TANDEM_SECRET_FILE=secret rank 0 parallel.ddp.init_method="$meeting" --run-dir never
same $? 2 "status with a secret that others can read"
has 0.err "TANDEM_SECRET_FILE"

# data of which one byte is another on the second host: found before step 1, on every rank
code 0 "$tandem" data make d0 --format idx --samples 60 --seed 3
cp -r d0 d1
printf '\x05' | dd of=d1/images-idx3-ubyte bs=1 seek=804 conv=notrunc status=none
cat >toy.yaml <<'YAML'
tandem: 1
model: {input: [1, 28, 28], layers: [flatten, {linear: 10}]}
data: {train: {format: idx, images: d0/images-idx3-ubyte, labels: d0/labels-idx1-ubyte}, transform: [to_float]}
optimizer: {type: sgd, lr: 0.1}
train: {epochs: 1, batch: {per_device: 10}}
run: {dir: null}
YAML
rank 0 parallel.ddp.init_method="$meeting" &
rank 1 parallel.ddp.init_method="$meeting" data.train.images=d1/images-idx3-ubyte
same $? 7 "status of the host with other data"
wait $!
same $? 7 "status of rank 0"
for r in 0 1; do
    has $r.err "ranks differ in data.train (all samples' bytes): rank 1 has "
    hasnt $r.err "step 1"
done
same "$(left_over)" "" "processes left over"

# a host alone, with one device: its rank is started, and starts no other
code 0 timeout 60 "$tandem" launch toy.yaml --nnodes 1 --node-rank 0 --master-addr localhost --mode ddp \
    'parallel.device_ids=[0]' --run-dir alone

# `tandem launch` on two hosts: only the first shows the job, the second says that it takes part
launch() {
    timeout 60 "$tandem" launch toy.yaml --nnodes 2 --node-rank "$1" --master-addr 127.0.0.1 --master-port "$port" \
        --mode ddp 'parallel.device_ids=[0]' --run-dir "launched$1" >"$1.out" 2>"$1.err"
}
launch 1 &
launch 0
same $? 0 "status of host 0"
wait $!
same $? 0 "status of host 1"
same "$(cat 1.out 1.err)" "tandem: host 1 of 2, rank 1 of 2: joining at 127.0.0.1:$port; host 0 shows the progress
tandem: host 1 of 2, rank 1 of 2: finished" "what host 1 says"
has 0.err "finished"
has 0.err "gradients over gloo (several hosts)"
same "$(left_over)" "" "processes left over"
