# check, show, explain, schema, plan, init: what a file means, without data or devices.
. "$(dirname "$0")/support.sh"
toy

code 0 "$tandem" check toy.yaml
golden check-good.txt "$out"
code 0 "$tandem" check toy.yaml --format json
has "$out" "[]"
code 3 "$tandem" check toy.yaml optimizer.lr=fast train.batch.per_device=0 paralel.mode=dp
same "$(grep -c 'error\[C' "$out")" 3 "number of faults"
cat >bad.yaml <<'YAML'
tandem: 1
name: bad
model:
  input: [1, 28, 28]
  layers:
    - conv2d: {out: 8, kernel: 3}
    - flaten
    - linear: {in: 100, out: 10}
data:
  train: {format: synthetic, samples: ten}
loss: cross_entropy
optimiser: {type: adam, lr: 1e-3}
train: {epochs: 1, batch: 32}
YAML
code 3 "$tandem" check bad.yaml
golden check-bad.txt "$out"
code 3 "$tandem" check bad.yaml --format json
has "$out" '"line"'
code 3 "$tandem" train bad.yaml --run-dir never
[ -e never ] && fail "a run directory was made for a bad file"
code 3 "$tandem" check missing.yaml
has "$err" "missing.yaml"

# a section that the command line wrote is not the file's
code 3 "$tandem" check toy.yaml 'data.train={format: npy, x: x.npy}'
has "$out" 'command line: error[C008]: data.train: format npy needs the key `y`'
code 3 "$tandem" check toy.yaml 'train={}'
same "$(grep -c '^command line: error' "$out")" 2 "faults of the command line"
echo '- 1' >list.yaml
code 3 "$tandem" check list.yaml
has "$out" 'hint: `tandem explain` lists the sections'
code 3 "$tandem" check toy.yaml data=3
has "$out" 'hint: `tandem explain data` lists its keys'
# too many changes for any resume: known without data from a length in steps, and from one in epochs that is long enough
for more in train.steps=1000000000000 "train.steps=null train.epochs=1000000000"; do
    code 3 "$tandem" check toy.yaml $more schedule.type=cosine
    has "$out" "error[C015]: the schedule changes the learning rate more than 100,000,000 times"
    code 3 "$tandem" check toy.yaml $more schedule.warmup_steps=1000000000
done
code 0 "$tandem" check toy.yaml train.steps=1000000000000 'schedule={type: cosine, per: epoch, total: 9}'

# A module that this build does not have may be found where the job runs: a warning beside the portrait.
code 0 "$tandem" check toy.yaml parallel.mode=ddp parallel.device=cuda train.precision=tf32 parallel.ddp.backend=nccl
has "$out" "no faults"
explained() { "$tandem" explain "$1" | grep -qF "not in this build: $2"; }
cp "$err" on_gpus
code 0 "$tandem" check toy.yaml parallel.mode=ddp parallel.ddp.backend=gloo
cat on_gpus >>"$err"
for wish in "parallel.device cuda" "train.precision tf32" "parallel.ddp.backend nccl" "parallel.ddp.backend gloo"; do
    if explained "${wish% *}" "${wish#* }"; then
        has "$err" "warning: $wish is not in this build: it has no module"
    else
        hasnt "$err" "warning: $wish"
    fi
done
# bf16 on a CPU: with AMX, with AVX512-BF16 of AMD, or with the reference kernels
bf16="train.precision=bf16 parallel.device=cpu train.steps=1 train.epochs=null"
code 0 "$tandem" train toy.yaml $bf16 parallel.kernels=ref --run-dir bf16-ref
if grep -qw amx_bf16 /proc/cpuinfo || { grep -qw avx512_bf16 /proc/cpuinfo && grep -q AuthenticAMD /proc/cpuinfo; }; then
    code 0 "$tandem" train toy.yaml $bf16 --run-dir bf16
else
    code 11 "$tandem" train toy.yaml $bf16 --run-dir bf16
    has "$err" "AMX-BF16"
fi
code 3 "$tandem" check toy.yaml train.precision=tf32 parallel.device=cpu
has "$out" "train.precision tf32 needs a CUDA device"
code 0 "$tandem" check toy.yaml
hasnt "$err" warning
code 0 "$tandem" show toy.yaml
cp "$out" resolved.yaml
code 0 "$tandem" check resolved.yaml
code 0 "$tandem" show toy.yaml --origins
has "$out" "# default"
has "$out" "toy.yaml:"
code 0 "$tandem" show toy.yaml optimizer.lr=0.5 optimizer.lr
has "$out" "0.5"
code 0 "$tandem" show toy.yaml 'data.transform=[to_float]' data.transform # a list is one value
same "$(cat "$out")" "[to_float]" data.transform
code 0 "$tandem" show toy.yaml 'optimizer.groups=[{params: ["*.bias"], lr: 0.5}]' optimizer.groups
same "$(cat "$out")" '[{params: ["*.bias"], lr: 0.5, weight_decay: null}]' optimizer.groups
code 2 "$tandem" show toy.yaml data.train
has "$err" "there is no key 'data.train' with a value"
code 0 "$tandem" show toy.yaml --json -o shown.json
has shown.json '"optimizer"'

code 0 "$tandem" explain optimizer.lr
golden explain-lr.txt "$out"
code 0 "$tandem" explain conv2d --lang zh
code 0 "$tandem" explain layers
code 0 "$tandem" explain
for section in tandem seed model data loss optimizer schedule train parallel eval checkpoint run log; do
    grep -qE "^  $section +[^ ]" "$out" || fail "explain alone does not list $section"
done
code 0 "$tandem" explain --lang zh
has "$out" "优化器"
code 0 "$tandem" schema -o schema.json
has schema.json "draft-07"
# a stream of the shell's is written to, not replaced
code 0 "$tandem" schema -o /dev/fd/7 7>stream.json
cmp -s schema.json stream.json || fail "schema -o /dev/fd/7"

code 0 "$tandem" plan toy.yaml parallel.kernels=ref parallel.mode=ddp parallel.threads_per_device=1
sed -E 's/hash [0-9a-f]+/hash -/' "$out" >plan.txt # the hash changes with the plan's insides
golden plan.txt plan.txt
# threads: those of the machine, shared by its devices; what is written stays
threads() {
    "$tandem" plan toy.yaml parallel.device=cpu "$@" | grep -oE '^plan .* threads [0-9]+' | grep -oE '[0-9]+$'
}
all=$(threads parallel.mode=single)
half=$((all > 1 ? all / 2 : 1))
same "$(threads parallel.mode=dp)" $half "threads of two devices"
same "$(threads parallel.mode=ddp)" $half "threads of two ranks"
same "$(threads parallel.threads_per_device=3)" 3 "threads as written"
if command -v taskset >/dev/null; then
    cpu=$(taskset -cp $$ | grep -oE '[0-9]+' | tail -1)
    same "$(taskset -c "$cpu" "$tandem" plan toy.yaml parallel.device=cpu | grep -oE 'threads [0-9]+')" "threads 1" "on one core"
fi
code 0 "$tandem" plan toy.yaml --graph
has "$out" "fc1"
code 2 "$tandem" plan toy.yaml --graph --after lower
has "$err" "\`--graph\` and \`--after\` cannot be used together"
code 2 "$tandem" plan toy.yaml --json --after lower
has "$err" "\`--after\` and \`--json\` cannot be used together"
code 0 "$tandem" plan toy.yaml --after backward
has "$out" "plan after backward  rows"
has "$out" "parameter: "
has "$out" "bwd    linear"
hasnt "$out" "act+"
code 0 "$tandem" plan toy.yaml --json
has "$out" '"memory_bytes"'

# Each option of ddp has a line: what it adds to the bytes of a step, and what it does to numbers.
cat >normed.yaml <<'YAML'
tandem: 1
name: normed
model: {input: [2, 4, 4], layers: [conv2d: {out: 4, kernel: 3}, batchnorm2d, flatten, linear: 2]}
data: {train: {format: synthetic, samples: 8}}
optimizer: {type: sgd, lr: 0.1}
train: {steps: 1, batch: {per_device: 2}}
parallel: {mode: ddp, device_ids: [0, 1, 2]}
YAML
option() { # LINE ARGUMENT...: its bytes, and what follows
    local key=$1
    shift
    code 0 "$tandem" plan normed.yaml "$@"
    sed -n "s/^  $key  *//p" "$out" | tr -s ' '
}
same "$(option 'static_graph: true' parallel.ddp.static_graph=true)" "0 none: the graph is the same in each step" "static_graph"
same "$(option 'broadcast_buffers: true')" "+384 each step begins with rank 0's batch-norm statistics" "broadcast_buffers"
same "$(option 'broadcast_buffers: false' parallel.ddp.broadcast_buffers=false)" \
    "0 each rank goes on with its own batch-norm statistics; rank 0's are saved" "no broadcast_buffers"
same "$(option 'broadcast_buffers: true' 'parallel.device_ids=[0]')" "0 none: one rank" "broadcast_buffers of one rank"
same "$(option 'check_reduction: false')" "0 none: sums are not compared in each step" "no check_reduction"
same "$(option 'check_reduction: true' parallel.ddp.check_reduction=true)" \
    "+96 none: a step ends the run if the ranks' sums differ" "check_reduction"
same "$(option 'join: false')" "0 the last batch of an epoch is filled up with samples from its beginning" "no join"
same "$(option 'join: true' parallel.ddp.join=true)" \
    "0 each sample counts once; in the last batch of an epoch replicas have fewer samples, or none" "join"
same "$(option 'join: true' parallel.ddp.join=true data.drop_last=true)" \
    "0 none: the last batch of an epoch is dropped" "join without a last batch"
same "$(option 'compress: bf16' parallel.ddp.compress=bf16)" \
    "-$((2 * 2 * 2 * $(grep -o 'grad\[[0-9]*,+[0-9]*)' "$out" | sed 's/.*+//; s/)//' | awk '{ n += $1 } END { print n }'))) each replica's gradient is rounded to 16 bits, and their sum once" "compress"
option compress 'parallel.ddp.compress={type: powersgd, rank: 2, start_step: 0}' train.accumulate=2 >/dev/null
has "$out" "from step 1 on gradients, summed over 2 micro-batches, are approximated by factors of 2 columns"
code 0 "$tandem" plan normed.yaml parallel.mode=dp
hasnt "$out" "options of ddp"
code 0 "$tandem" plan normed.yaml parallel.mode=dp parallel.ddp.join=true # it counts in every mode
same "$(grep -c '^  [a-z_]*: ' "$out")" 1 "options in dp"
code 0 "$tandem" plan normed.yaml --json
for key in bucket_cap_mb first_bucket_mb find_unused_parameters static_graph compress join average broadcast_buffers check_reduction; do
    has "$out" "\"option\":\"$key\""
done

# A network by name in place of the file's layers, and the other way round.
code 3 "$tandem" check normed.yaml model.builtin=lenet5 'model.input=[1, 28, 28]'
has "$out" "model must have either layers or builtin, got both"
code 0 "$tandem" check normed.yaml model.layers=null model.builtin=lenet5 'model.input=[1, 28, 28]'
has "$out" "61,706 parameters"
code 0 "$tandem" check normed.yaml model.blocks=null model.layers=null model.builtin=lenet5 'model.input=[1, 28, 28]'
sed 's/layers: .*}$/builtin: lenet5}/' normed.yaml >named.yaml
code 0 "$tandem" check named.yaml 'model.input=[1, 28, 28]'
code 0 "$tandem" check named.yaml model.builtin=null 'model.layers=[flatten, linear: 2]'
has "$out" "66 parameters"
code 3 "$tandem" check named.yaml model.builtin=null
has "$out" 'the key `model.layers` is missing'
code 3 "$tandem" check normed.yaml model.layers=null
has "$out" "model.layers must be a list of layers, got nothing"

for task in cifar mnist toy-mp; do
    for lang in en zh; do
        code 0 "$tandem" init --task $task --lang $lang -o "$task-$lang.yaml"
        code 0 "$tandem" check "$task-$lang.yaml"
    done
done
code 2 "$tandem" init -o cifar-en.yaml
has "$err" "already exists"
code 0 "$tandem" init -o cifar-en.yaml --force

code 0 "$tandem" train toy.yaml --print-config --mode dp
has "$out" "mode: dp"
