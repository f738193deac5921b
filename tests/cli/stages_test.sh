# A replica over several devices: the toy of the tutorial and a ResNet-18 end with the bits of one device, alone and in
# ddp, in the memory that the plan names.
. "$(dirname "$0")/support.sh"
export TANDEM_LOG=error
fact() { # RUN KEY
    grep -o "\"$2\":[^]}]*" "$1/summary.json" | sed 's/"[a-z0-9_]*"://; s/,"[a-z].*//; s/\[//'
}
run() { # NAME FILE ARGUMENT...
    local name=$1 file=$2
    shift 2
    code 0 "$tandem" train "$file" --quiet --run-dir "$name" parallel.device=cpu "$@"
}
planned() { # FILE ARGUMENT...: the peaks of a replica's devices
    "$tandem" plan "$@" | awk '$1 == "total" { printf "%s%s", sep, $4; sep = "," }'
}

# The toy: layers name their stages.
cp "$SAMPLES/toy_mp/toy_mp.yaml" "$SAMPLES/toy/toy.yaml" .
run one toy.yaml train.accumulate=4
run two toy_mp.yaml
same "$(fact two params_xxh3)" "$(fact one params_xxh3)" "the toy's parameters"
run parts toy.yaml train.accumulate=4 'parallel.device_ids=[0, 1]'
run ranks toy_mp.yaml --mode ddp 'parallel.device_ids=[0, 1, 2, 3]'
same "$(fact ranks params_xxh3)" "$(fact parts params_xxh3)" "the toy's parameters in ddp"
same "$(fact two peak_memory_bytes)" "$(planned toy_mp.yaml)" "the toy's memory"

# On one device after all: `stage` is ignored, if the job says so.
run again toy_mp.yaml parallel.stages=1 'parallel.device_ids=[0]'
same "$(fact again params_xxh3)" "$(fact one params_xxh3)" "the toy's parameters on one device"
code 0 "$tandem" plan toy_mp.yaml parallel.stages=1 'parallel.device_ids=[0]'
has "$out" "note: parallel.stages is 1: each replica runs on one device, and \`stage\` of 1 layer is ignored"
code 0 "$tandem" plan toy_mp.yaml
hasnt "$out" "is ignored"
grep -v 'stages:' toy_mp.yaml >forgotten.yaml
code 3 "$tandem" check forgotten.yaml
has "$out" "is in stage 1, but parallel.stages is 1"
has "$out" "or 1 to run the layers on one device"

# What `check` says of devices is what `train` begins with.
replicas() { # FILE ARGUMENT...: how many parts `check` names
    code 0 "$tandem" check "$@"
    sed -n 's/.*, \([0-9]*\) parts of a batch in turn$/\1/p' "$out"
}
code 0 "$tandem" check toy.yaml
has "$out" "single on 1 device"
hasnt "$out" "in turn"
same "$(replicas toy.yaml 'parallel.device_ids=[0, 1]')" 2 "parts on one device"
code 0 "$tandem" train toy.yaml 'parallel.device_ids=[0, 1]' --steps 1 --run-dir begun
has "$err" "x 2 = "
has "$err" "all on one device"
same "$(replicas toy_mp.yaml 'parallel.device_ids=[0, 1, 2, 3]')" 2 "parts on two stages"
code 3 "$tandem" check toy.yaml 'train.batch={global: 33}' 'parallel.device_ids=[0, 1]'
has "$out" "multiple of the 2 devices of parallel.device_ids, got 33; write 32 or 34"
code 3 "$tandem" check toy_mp.yaml 'train.batch={global: 33}' 'parallel.stages=1' # the line has the overridden key, too
has "$out" "hint: line $(grep -n device_ids toy_mp.yaml | cut -d: -f1) has parallel.device_ids"
code 3 "$tandem" train toy.yaml 'train.batch={global: 33}' 'parallel.device_ids=[0, 1]'

# ResNet-18, cut by its work; it continues in other stages, and one device evaluates it.
# Under sanitizers, where its 11 million parameters take most of a minute, a small net has its place.
conv='conv2d: {out: 16, kernel: 3, padding: same}'
small="layers: [{$conv}, batchnorm2d: {name: bn1}, relu, {$conv}, relu, {$conv}, relu, {$conv}, flatten, linear: 10]"
network='builtin: resnet18, classes: 10, small_input: true'
[ -z "${SANITIZED:-}" ] || network=$small
job() { # NETWORK
    cat <<YAML
tandem: 1
name: net
model: {input: [3, 8, 8], $1}
data: {train: {format: synthetic, samples: 64}, eval: {format: synthetic, samples: 16}}
optimizer: {type: sgd, lr: 0.01, momentum: 0.9}
train: {steps: 2, batch: {per_device: 8}, accumulate: 4, clip_grad_norm: 1}
eval: {every: never}
checkpoint: {every: 1 steps}
parallel: {threads_per_device: 1}
YAML
}
job "$network" >net.yaml
job "$small" >small.yaml
run net1 net.yaml
run net2 net.yaml parallel.stages=2 'parallel.device_ids=[0, 1]'
run net4 net.yaml parallel.stages=4 'parallel.device_ids=[0, 1, 2, 3]'
same "$(fact net2 params_xxh3)" "$(fact net1 params_xxh3)" "ResNet-18 in two stages"
same "$(fact net4 params_xxh3)" "$(fact net1 params_xxh3)" "ResNet-18 in four stages"
same "$(fact net4 peak_memory_bytes)" "$(planned net.yaml parallel.stages=4 'parallel.device_ids=[0, 1, 2, 3]')" "memory of four stages"
run net22 net.yaml 'parallel.device_ids=[0, 1]'
run netddp net.yaml --mode ddp parallel.stages=2 'parallel.device_ids=[0, 1, 2, 3]' --steps 1
run netddp net.yaml --mode ddp parallel.stages=4 'parallel.device_ids=[0, 1, 2, 3, 4, 5, 6, 7]'
same "$(fact netddp params_xxh3)" "$(fact net22 params_xxh3)" "ResNet-18 in ddp, in two stages and then in four"
four=('parallel.device_ids=[0, 1, 2, 3]' parallel.stages=2 parallel.mode=ddp)
for how in bf16 '{type: powersgd, start_step: 0}'; do # gradients that are sent in less, in the memory of each stage
    run less small.yaml "${four[@]}" "parallel.ddp.compress=$how" --resume never
    here=$(planned small.yaml "${four[@]}" "parallel.ddp.compress=$how")
    same "$(fact less peak_memory_bytes)" "$here,$here" "memory of stages with $how"
    rm -r less
done
four=("${four[@]:0:2}" parallel.sync_batchnorm=true --resume never)
run alone small.yaml "${four[@]}"
same "$(fact alone peak_memory_bytes)" "$(planned small.yaml "${four[@]:0:3}")" "memory of stages whose parts exchange statistics"
run synced small.yaml "${four[@]}" parallel.mode=ddp
same "$(fact synced params_xxh3)" "$(fact alone params_xxh3)" "two stages with the statistics of all ranks"
here=$(planned small.yaml "${four[@]:0:3}" parallel.mode=ddp)
same "$(fact synced peak_memory_bytes)" "$here,$here" "memory of stages that exchange statistics"
code 0 "$tandem" eval net4
four=$(cat "$out")
code 0 "$tandem" eval net1
same "$four" "$(cat "$out")" "evaluations"

# What the plan and the banner say; batch norm's line.
code 0 "$tandem" plan net.yaml parallel.stages=2 'parallel.device_ids=[0, 1]'
has "$out" "2 stages, 4 micro-batches a step: bubble 1/5 = 20.0 %, efficiency of equal stages 80.0 %"
has "$out" "memory of device 1, of 2"
code 0 "$tandem" plan net.yaml parallel.stages=2 'parallel.device_ids=[0, 1]' --json
has "$out" '"micro_batches":4,"bubble":0.2'
unset TANDEM_LOG
statistics="batchnorm2d 'bn1' sees one micro-batch at a time: its statistics in training are those of 2 samples, not of a replica's 8"
code 0 "$tandem" plan net.yaml parallel.stages=2 'parallel.device_ids=[0, 1]'
has "$out" "note: $statistics"
code 0 "$tandem" check net.yaml parallel.stages=2 'parallel.device_ids=[0, 1]'
has "$err" "warning: $statistics"
code 0 "$tandem" check net.yaml parallel.mode=ddp parallel.stages=2 'parallel.device_ids=[0, 1, 2, 3]' parallel.sync_batchnorm=true
has "$err" "are those of 4 samples, not of all replicas' 16"
sed 's/batchnorm2d: {name: bn1/&, track_running_stats: false/' net.yaml >batch.yaml
code 0 "$tandem" check batch.yaml parallel.stages=2 'parallel.device_ids=[0, 1]'
has "$err" "warning: $statistics"
code 0 "$tandem" check net.yaml
hasnt "$err" "warning"
compressed="each replica's gradient, summed over 4 micro-batches, is rounded to 16 bits, and their sum once"
compress="parallel.mode=ddp parallel.device_ids=[0,1] parallel.device=cpu parallel.ddp.compress=bf16"
code 0 "$tandem" plan net.yaml $compress
has "$out" "$compressed"
code 0 "$tandem" check net.yaml $compress
has "$err" "warning: parallel.ddp.compress: $compressed"
code 0 "$tandem" train net.yaml $compress --run-dir compressed
has "$err" "warning: plan: parallel.ddp.compress: $compressed"
code 0 "$tandem" train net.yaml parallel.stages=2 'parallel.device_ids=[0, 1]' parallel.device=cpu --run-dir said
has "$err" "$statistics"
has "$err" "single, 2 stages, a device each (cpu)"

# Refused before anything starts.
code 3 "$tandem" train net.yaml parallel.stages=2 --run-dir never
has "$err" "parallel.device_ids must name a device for each of the 2 stages"
code 3 "$tandem" train net.yaml parallel.stages=2 'parallel.device_ids=[0, 1]' train.accumulate=3 --run-dir never
has "$err" "train.accumulate must divide the 8 samples of a replica"
code 11 "$tandem" train net.yaml --mode ddp parallel.stages=2 'parallel.device_ids=[0, 1, 2, 3]' parallel.device=cpu parallel.ddp.backend=nccl --run-dir never
has "$err" "parallel.ddp.backend: nccl reduces in device memory, this job's device is cpu; use shm or auto"
[ -e never ] && fail "a run directory was made for a job that cannot run"
exit 0
