# burnin: every device of the processor, and emulated GPUs of which one computes badly.
. "$(dirname "$0")/support.sh"
toy

number() { # KEY of the whole; DEVICE KEY of a device
    python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
for key in sys.argv[2:]:
    d = d["devices"][int(key)] if key.isdigit() else d[key]
print(json.dumps(d).strip("\""))' "$out" "$@"
}

# Counts and times add up: the samples of all devices over the true time are the rate of the whole.
code 0 "$tandem" burnin toy.yaml --iterations 20 burnin.max_samples=20 --json
same "$(number samples)" $((2 * (6 * 20 + 16))) "samples of both devices" # 20 batches of 8, 8 and 4
same "$(number 0 samples)" "$(number 1 samples)" "samples of the devices"
same "$(number different_samples)" 20 "samples of the data"
same "$(number good)" true good
same "$(number equal_bits)" true "equal bits"
python3 - "$out" <<'PY' || fail "times do not add up"
import json, sys
d = json.load(open(sys.argv[1]))
assert d["seconds"] == max(x["seconds"] for x in d["devices"])
assert d["samples"] == sum(x["samples"] for x in d["devices"])
assert abs(d["samples_per_s"] * d["seconds"] / d["samples"] - 1) < 1e-6
for x in d["devices"]:
    assert x["batches"] == 20 and x["wrong_batches"] == 0 and x["difference"] == 0
    assert x["ms"]["least"] <= x["ms"]["mean"] <= x["ms"]["most"]
    assert x["ms"]["mean"] * x["batches"] <= 1000 * x["seconds"] * 1.000001
    assert abs(x["samples_per_s"] * x["seconds"] / x["samples"] - 1) < 1e-6
PY
# One device: the reference kernels judge it. Three, by the clock; a run directory brings its weights.
code 0 "$tandem" burnin toy.yaml --iterations 3 parallel.device_ids=[0]
has "$out" "good: 1 of 1 device"
code 0 "$tandem" train toy.yaml --quiet --run-dir trained
code 0 "$tandem" burnin trained --duration 300ms parallel.device_ids=[0,1,2]
has "$out" "good: 3 of 3 devices"
has "$out" "outputs are the same bits on all devices"
has "$err" "burn-in of toy: 3 devices, 50 samples in batches of 8"

# The starter runs as it is written, with or without a GPU; a file for burn-in alone needs no `train`.
code 0 "$tandem" init --task resnet50-burnin -o starter.yaml
code 0 "$tandem" check starter.yaml
if [ -z "${SANITIZED:-}" ]; then # where ResNet-50 takes most of a minute
    code 0 "$tandem" burnin starter.yaml --iterations 2 train.batch.per_device=1 burnin.max_samples=2
    has "$out" "good: 1 of 1 device"
fi
cat >alone.yaml <<'YAML'
tandem: 1
model: {input: 10, layers: [linear: 5]}
data: {eval: {format: synthetic, samples: 40}}
YAML
code 0 "$tandem" burnin alone.yaml --iterations 2
has "$err" "40 samples in batches of 32, for 2 batches"
code 0 "$tandem" burnin alone.yaml --iterations 2 train.batch.global=16 train.epochs=3
has "$err" "40 samples in batches of 16"
code 0 "$tandem" plan alone.yaml --predict
for verb in train compare plan check; do
    code 3 "$tandem" $verb alone.yaml
done
echo 'burnin: {iterations: 2}' >>alone.yaml
code 0 "$tandem" burnin alone.yaml
for verb in check show; do
    code 0 "$tandem" $verb alone.yaml
done
for verb in train compare plan 'bench data'; do
    code 3 "$tandem" $verb alone.yaml # without a length
    has "$err" "alone.yaml is a file for \`tandem burnin\`: to train, write \`train: {epochs: 3}\`"
done
code 0 "$tandem" plan alone.yaml train.steps=1
code 2 "$tandem" burnin
code 3 "$tandem" burnin toy.yaml --iterations 0
has "$err" "burnin.iterations"
code 3 "$tandem" burnin toy.yaml burnin.tolerance=2
code 8 "$tandem" burnin toy.yaml --weights nowhere.safetensors
# Outputs that are no numbers on any device are the model's fault, or the data's.
python3 - <<'PY'
import struct
def npy(name, kind, shape, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)
    head += " " * (118 - len(head) - 1) + "\n"
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)
npy("x.npy", "<f4", "(5, 10)", struct.pack("<50f", *(float("nan") if i == 35 else i for i in range(50))))
npy("y.npy", "<i8", "(5,)", struct.pack("<5q", 0, 1, 2, 3, 0))
PY
code 9 "$tandem" burnin toy.yaml --iterations 2 'data.eval={format: npy, x: x.npy, y: y.npy}'
has "$err" "of sample 3 is not finite on cpu:0, and the other devices agree"
# Ctrl-C ends it with the report so far.
"$tandem" burnin toy.yaml --duration 1h >"$out" 2>"$err" &
pid=$!
eventually grep -q "burn-in of toy" "$err"
sleep 0.3
kill -INT $pid
wait $pid
same $? 130 "status after SIGINT"
has "$out" "good: 2 of 2 devices, stopped early"

[ -n "${EMULATED_MODULES:-}" ] || exit 0
export TANDEM_MODULE_PATH=$EMULATED_MODULES TANDEM_CUDA_LIBRARIES=$EMULATED_LIBRARIES CUDA_EMULATED_DEVICES=3
gpu="parallel.device=cuda"
code 0 "$tandem" burnin toy.yaml $gpu --iterations 12 parallel.device_ids=[0,1,2]
has "$out" "cuda:2"
has "$out" "good: 3 of 3 devices"
# always wrong in the same way: named by the majority of three, by the processor among two, and alone
bad() { # DEVICES INDEX
    CUBLASLT_EMULATED_DISTURBS=$2 code 12 "$tandem" burnin toy.yaml $gpu --iterations 12 "parallel.device_ids=[$1]"
    has "$out" "cuda:$2 is bad: its outputs of sample 0 differ from $3"
    same "$(grep -c " is bad: " "$out")" 1 "bad devices"
    has "$err" "1 of "
}
bad 0,1,2 1 "those of the other devices"
bad 0,1 1 "those of the host's processor"
bad 0,1 0 "those of the host's processor"
bad 2 2 "those of the host's processor"
# wrong now and then: it does not agree with itself
export CUBLASLT_EMULATED_DISTURBS=0 CUBLASLT_EMULATED_DISTURBS_EVERY=37
code 12 "$tandem" burnin toy.yaml $gpu --iterations 60 parallel.device_ids=[0,1,2] --json
same "$(number 0 verdict)" unstable "verdict of cuda:0"
same "$(number 1 verdict)" good "verdict of cuda:1"
same "$(number 2 verdict)" good "verdict of cuda:2"
same "$(number good)" false good
[ "$(number 0 wrong_batches)" -gt 0 ] || fail "no wrong batches"
unset CUBLASLT_EMULATED_DISTURBS CUBLASLT_EMULATED_DISTURBS_EVERY
# a device that is not there is bad; if there is no other, the job cannot run
code 12 "$tandem" burnin toy.yaml $gpu --iterations 3 parallel.device_ids=[0,7]
has "$out" "device 7 is bad: "
has "$out" "failed"
code 5 "$tandem" burnin toy.yaml $gpu --iterations 3 parallel.device_ids=[7]
# one that fails while it works
CUDA_EMULATED_FAIL_WORK_AT=400 code 12 "$tandem" burnin toy.yaml $gpu --iterations 200 parallel.device_ids=[0,1]
has "$out" "failed"
