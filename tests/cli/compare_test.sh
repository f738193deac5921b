# compare: equal bits in every mode, the file it writes, and what it says when something is in the way.
. "$(dirname "$0")/support.sh"
toy

code 0 "$tandem" compare toy.yaml --steps 12 --out c
has "$out" "equal bits"
has "$err" "training one-device: 12 steps in single mode, as the baseline of the speed-up"
has "$out" "speed-up over one device"
has "$out" "params_xxh3"
for key in modes mode devices params_xxh3 final_loss samples_per_s ms peak_memory_bytes max_loss_diff max_param_diff \
    first_differing_step equal_bits; do
    has c/compare.json "\"$key\""
done
same "$(json c/compare.json equal_bits)" true equal_bits
same "$(json c/compare.json first_differing_step)" null first_differing_step
has c/report.html "<svg"
same "$(grep -c '"kind":"train"' c/dp/metrics.jsonl)" 12 "every step is kept"
code 2 "$tandem" compare toy.yaml --steps 12 --out c
has "$err" "already holds a run"
mkdir linked elsewhere
ln -s "$PWD/elsewhere" linked/ddp
code 2 "$tandem" compare toy.yaml --modes dp,ddp --steps 2 --out linked
has "$err" "linked/ddp is a symbolic link, which is not followed"
same "$(ls elsewhere)" "" "files behind a planted link"

code 0 "$tandem" compare toy.yaml --modes single,dp,ddp --steps 6 --out d --tolerance loss=1e-6,params=1e-6
has "$out" "single"
hasnt "$err" "one-device"
[ -e d/one-device ] && fail "a run on one device was made twice"
has d/report.html '<th><code>parallel.mode</code></th><td><code>single</code></td><td><code>dp</code></td><td><code>ddp</code></td>'
hasnt d/report.html '<th><code>optimizer.lr</code></th>'

# Compression: the same bits in every mode. What only ddp computes is left out of the others, and told.
powersgd='parallel.ddp.compress={type: powersgd, rank: 1, start_step: 2, min_rate: 1}'
for how in parallel.ddp.compress=bf16 parallel.ddp.compress=fp16 "$powersgd"; do
    rm -rf less
    code 0 "$tandem" compare toy.yaml --steps 6 --modes single,dp,ddp --out less "$how"
    has "$out" "equal bits"
    hasnt "$out" "is without"
done
code 0 "$tandem" compare toy.yaml --steps 3 --modes single,dp,ddp --out means parallel.ddp.average=ranks
has "$err" "training dp without parallel.ddp.average: ranks"
has "$out" "  single is without parallel.ddp.average: ranks, which only ddp computes"
has "$out" "  dp is without parallel.ddp.average: ranks, which only ddp computes"
hasnt "$out" "  ddp is without"
same "$(grep -c '"without": "parallel.ddp.average: ranks"' means/compare.json)" 2 "runs without"
code 3 "$tandem" compare toy.yaml --steps 3 --modes single,dp --out none parallel.ddp.average=ranks
has "$err" "parallel.ddp.average: ranks needs mode ddp or a single device"

# dp has no stages: single takes its place, unless the modes are given.
cat >stages.yaml <<'YAML'
tandem: 1
model: {input: 10, layers: [{linear: {out: 10, stage: 0}}, relu, {linear: {out: 5, stage: 1}}]}
data: {train: {format: synthetic, samples: 40}}
loss: mse
train: {steps: 6, batch: {per_device: 8}, accumulate: 2}
parallel: {mode: single, stages: 2, device_ids: [0, 1]}
YAML
code 0 "$tandem" compare stages.yaml --out staged
has "$err" "dp is left out, which has no parallel.stages; single is compared with ddp"
has "$out" "equal bits"
has "$out" "  dp is left out, which has no parallel.stages"
same "$(ls -d staged/*/ | tr -d '\n')" staged/ddp/staged/single/ "runs with stages"
code 3 "$tandem" compare stages.yaml --modes dp,ddp --out refused
has "$err" "parallel.stages above 1 needs mode single or ddp"

# A bar of the page is as long as its step: communication that nothing hides counts, and so does what no phase measures.
made_run() { # NAME MODE PHASES
    mkdir "$1"
    echo '{"kind":"train","step":1,"loss":1}' >"$1/metrics.jsonl"
    echo "{\"mode\":\"$2\",\"ms\":{$3}}" >"$1/summary.json"
}
made_run slow dp '"forward":40,"backward":20,"comm":25,"optimizer":5,"step":100'
made_run fast ddp '"forward":50,"comm":30,"comm_exposed":3,"step":53'
printf 'optimizer:\n  type: sgd\n  momentum: 0.9\n' >slow/config.resolved.yaml
printf 'optimizer:\n  type: adam\n' >fast/config.resolved.yaml
code 0 "$tandem" report slow --against fast
for bar in 'comm 25 ms</title>' 'other 10 ms</title>' '>100 ms</text>' 'comm 3 ms</title>' '>53 ms</text>'; do
    has slow/report.html "$bar"
done
hasnt slow/report.html 'comm 30 ms</title>'
has slow/report.html '<th><code>optimizer.momentum</code></th><td><code>0.9</code></td><td><code>-</code></td>'
code 2 "$tandem" compare toy.yaml --modes dp,tp
code 2 "$tandem" compare toy.yaml --tolerance loss=small
code 3 "$tandem" compare toy.yaml optimizer.lr=fast
code 9 "$tandem" compare toy.yaml --steps 20 optimizer.lr=1e6 optimizer.type=sgd --out e
has "$err" "its files are in e/dp"
