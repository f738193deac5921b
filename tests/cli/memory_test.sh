# plan --memory: what the whole process needs, against what it took. Needs COST, which prints a command's peak.
. "$(dirname "$0")/support.sh"

cat >net.yaml <<EOF
tandem: 1
seed: 1
model: {builtin: resnet18, classes: 10, small_input: true, input: [3, 32, 32]}
data:
  train: {format: synthetic, samples: 64, classes: 10}
optimizer: {type: sgd, lr: 0.01, momentum: 0.9}
train: {steps: 1, batch: {per_device: 4}}
parallel: {device: cpu, device_ids: [0]}
run: {dir: run}
EOF

rows() { # the bytes of the rows from "memory of ..." on, the last of which is the total
    sed -n "/^memory of $1/,\$p" "$out" | sed -nE 's/^  [a-z]+ .* ([0-9]+) B$/\1/p'
}

"$tandem" doctor >doctor.txt
gloo=$(sed -nE 's/^ *gloo +usable.*/parallel.ddp.backend=gloo/p' doctor.txt)
bf16=$(sed -nE 's/^ *dnnl +usable.* bf16,.*/train.precision=bf16/p' doctor.txt)
factors="parallel.ddp.compress.type=powersgd parallel.ddp.compress.start_step=0"
for mode in "single $bf16" "single parallel.threads_per_device=2" "dp parallel.device_ids=[0,1] $bf16" \
    "single parallel.device_ids=[0,1] parallel.stages=2" "single parallel.device_ids=[0,1,2,3] parallel.stages=4" \
    "single" "dp parallel.device_ids=[0,1]" "single parallel.device_ids=[0,1]" "single parallel.device_ids=[0,1,2,3]" "dp parallel.device_ids=[0,1] parallel.dp.update=all $factors" \
    "single parallel.device_ids=[0,1] parallel.sync_batchnorm=true $factors" "dp parallel.device_ids=[0,1] parallel.sync_batchnorm=true"; do
    # shellcheck disable=SC2086 # a mode and its overrides
    set -- parallel.mode=$mode
    code 0 "$tandem" plan net.yaml "$@" --memory
    total=$(rows "the process" | tail -1)
    device=$(sed -n '/^memory of device/,/^between/p' "$out" | sed -nE 's/^  total .* ([0-9]+) B$/\1/p' | head -1)
    same $(($(rows "the process" | head -n -1 | paste -sd+))) "$total" "the sum of the rows, $mode"
    rm -rf run
    peak=$("$COST" "$tandem" train net.yaml "$@" --quiet 2>/dev/null | awk '{print $1 == 0 ? $3 * 1024 : 0}')
    same "$(grep -oE '"peak_memory_bytes":\[[0-9]+' run/summary.json | grep -oE '[0-9]+$')" "$device" "memory of device 0, $mode"
    [ $((peak * 100)) -gt $((total * 97)) ] && [ $((peak * 100)) -lt $((total * 103)) ] ||
        fail "$mode: the plan says $total bytes, the process took $peak"
done

# ranks of ddp: each has a share of every batch, and the system counts what it reads of the other ranks' memory
for options in "" "$gloo" "$gloo $bf16" "parallel.ddp.compress.type=bf16" "$factors" "parallel.device_ids=[0,1,2]"; do
    # shellcheck disable=SC2086 # overrides
    set -- parallel.mode=ddp "parallel.device_ids=[0,1]" $options
    code 0 "$tandem" plan net.yaml "$@" --memory
    has "$out" "memory of each process"
    total=$(rows "each process" | tail -1)
    same $(($(rows "each process" | head -n -1 | paste -sd+))) "$total" "the sum of the rows, ddp $options"
    rm -rf run
    peak=$("$COST" "$tandem" train net.yaml "$@" --quiet 2>/dev/null | awk '{print $1 == 0 ? $3 * 1024 : 0}')
    [ $((peak * 100)) -gt $((total * 97)) ] && [ $((peak * 100)) -lt $((total * 103)) ] ||
        fail "ddp $options: the plan says $total bytes, a process took $peak"
done

# host.memory_limit: compared with the plan, checked, kept
code 0 "$tandem" plan net.yaml host.memory_limit=1GiB --memory
has "$out" "host.memory_limit is 1.0 GiB; beyond the program this job needs "
hasnt "$out" "so it will be refused"
code 0 "$tandem" plan net.yaml host.memory_limit=20MiB --memory
has "$out" "so it will be refused"
code 3 "$tandem" check net.yaml host.memory_limit=20MiB
has "$out" "command line: error[C015]: host.memory_limit is 20.0 MiB, and the replicas of a process need"
code 3 "$tandem" check net.yaml host.memory_limit=20MiB --format json
has "$out" '"key": "host.memory_limit", "message": "host.memory_limit is 20.0 MiB, and'
same "$(cat "$err")" "" "what a check says beside its JSON"
code 3 "$tandem" check net.yaml host.memory_limit=20MiB
has "$out" "make train.batch.per_device or data.workers smaller"
code 0 "$tandem" check net.yaml host.memory_limit=1GiB
code 0 "$tandem" check net.yaml host.memory_limit=20MiB parallel.device=cuda # replicas are not in the host's memory
for mode in "single" "dp parallel.device_ids=[0,1]" "single parallel.device_ids=[0,1] parallel.stages=2" \
    "ddp parallel.device_ids=[0,1]"; do
    # shellcheck disable=SC2086 # a mode and its overrides
    set -- parallel.mode=$mode
    code 0 "$tandem" plan net.yaml "$@" host.memory_limit=1GiB --memory
    mib=$(sed -nE 's/.*beyond the program this job needs ([0-9]+)(\.[0-9]+)? MiB.*/\1/p' "$out")
    rm -rf run
    code 0 "$tandem" train net.yaml "$@" host.memory_limit=$((mib + 3))MiB --quiet
    rm -rf run
    code 6 "$tandem" train net.yaml "$@" host.memory_limit=$((mib / 2))MiB --quiet
    has "$err" "host.memory_limit is $((mib / 2))"
    has "$err" "and this run needs"
done

code 2 "$tandem" plan net.yaml --memory --json
has "$err" "\`--memory\` and \`--json\` cannot be used together"
sed -i "s|format: synthetic, .*|format: npy, x: nowhere.npy, y: nowhere.npy}|" net.yaml
code 4 "$tandem" plan net.yaml --memory
has "$err" "nowhere"
