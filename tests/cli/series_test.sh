# Series in .npy files: a configuration from a look at them, what they are refused for, training in three modes.
. "$(dirname "$0")/support.sh"
python3 - <<'PY' || exit 77
import math, os, random, struct
random.seed(1)

def save(path, kind, shape, numbers):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    head = "{'descr': '<%s8', 'fortran_order': False, 'shape': (%s), }" % (kind, "".join("%d, " % n for n in shape))
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        f.write(struct.pack("<%d%s" % (len(numbers), {"f": "d", "i": "q"}[kind]), *numbers))

# waves of 2 or 5 periods on channels of very different size
N, C, L = 60, 2, 40
labels = [n % 2 for n in range(N)]
x = [[[(9 + math.sin((2 + 3 * y) * 2 * math.pi * (k / L + start)) + random.gauss(0, 0.3)) * 100 ** c for k in range(L)] for c in range(C)]
     for y in labels for start in [random.random()]]
flat = lambda x: [v for sample in x for row in sample for v in row]
turned = [[list(point) for point in zip(*sample)] for sample in x]
save("waves/x.npy", "f", (N, C, L), flat(x))
save("waves/y.npy", "i", (N,), labels)
save("steps/x_train.npy", "f", (N, L, C), flat(turned))
save("steps/y_train.npy", "i", (N,), labels)
save("amounts/x.npy", "f", (N, L), [row for sample in x for row in sample[0]])
save("amounts/y.npy", "f", (N,), [0.5 * y for y in labels])
save("far/x.npy", "f", (N, L), [row for sample in x for row in sample[0]])
save("far/y.npy", "f", (N,), [1000 + 100.0 * y for y in labels])
def bad(name, x_shape, x, labels, kind="i"):
    save(name + "/x.npy", "f", x_shape, x)
    save(name + "/y.npy", kind, (len(labels),), labels)
bad("one", (1, C, L), flat(x[:1]), labels[:1])
bad("fewer", (N, C, L), flat(x), labels[1:])
bad("same", (N, C, L), flat(x), [3] * N)
bad("large", (N, C, L), flat(x), [y + 7000 for y in labels])
numbers = flat(x)
numbers[7 * C * L + L + 3] = math.nan
bad("nan", (N, C, L), numbers, labels)
ends = [[row[:30] + [math.nan] * 10 if n == 17 else row for row in sample] for n, sample in enumerate(x)]
bad("uneven", (N, C, L), flat(ends), labels)
bad("deep", (N, C, 4, L // 4), flat(x), labels)
with open("waves/x.npy", "rb") as f:
    data = f.read().replace(b"'<f8'", b"'|O' ")
os.makedirs("objects")
open("objects/x.npy", "wb").write(data)
os.link("waves/y.npy", "objects/y.npy")
# to predict for
def save_big_endian(path, kind, shape, numbers):
    save(path, "i", shape, [])
    with open(path, "rb") as f:
        head = f.read().replace(b"<i8", kind.encode())
    with open(path, "wb") as f:
        f.write(head + struct.pack(">%d%s" % (len(numbers), {"f": "d", "i": "h"}[kind[1]]), *numbers))
whole = [round(v) for v in flat(x[:9])]
save("new/x.npy", "f", (9, C, L), flat(x[:9]))
save_big_endian("new/big.npy", ">f8", (9, C, L), flat(x[:9]))
save("new/whole.npy", "f", (9, C, L), whole)
save_big_endian("new/integers.npy", ">i2", (9, C, L), whole)
save("new/short.npy", "f", (9, C, L - 1), [0] * (9 * C * (L - 1)))
save("two/x.npy", "f", (N, L), [row for sample in x for row in sample[0]])
save("two/y.npy", "f", (N, 2), [v for y in labels for v in (y, -y)])
os.makedirs("alone")
os.link("waves/x.npy", "alone/x.npy")
PY

# what is written trains well without a change
code 0 "$tandem" init --task series --data waves -o waves.yaml
has waves.yaml "input: [2, 40]"
code 0 "$tandem" check waves.yaml
code 0 "$tandem" data check waves.yaml
has "$out" "normalize   {mean: [9."
same "$(grep -c 'normalize .*mean: \[[0-9.]*, [0-9.]*\]' "$out")" 2 "a mean for each channel"
code 0 "$tandem" train waves.yaml --run-dir waves-run
has "$out" "accuracy, eval   100.00 %"
for mode in single dp ddp; do
    code 0 "$tandem" train waves.yaml --mode $mode --run-dir $mode train.epochs=4 parallel.dp.scatter=strided
    hashes="${hashes:-} $(grep -o '"params_xxh3": *"[0-9a-f]*"' $mode/summary.json)"
done
same "$(tr ' ' '\n' <<<"$hashes" | grep -v '^$' | sort -u | grep -c xxh3)" 1 "different hashes of parameters"
code 0 "$tandem" init --task series --data steps/x_train.npy -o steps.yaml
has steps.yaml "- transpose"
has steps.yaml "/y_train.npy"
code 0 "$tandem" train steps.yaml --run-dir steps-run train.epochs=20
has "$out" "accuracy, eval   100.00 %"
code 0 "$tandem" init --task series --data amounts/x.npy --target amounts/y.npy -o amounts.yaml
has amounts.yaml "loss: mse"
code 0 "$tandem" train amounts.yaml --run-dir amounts-run train.epochs=3
code 0 "$tandem" init --task series --data waves --lang zh -o chinese.yaml
code 0 "$tandem" check chinese.yaml

# arrays without labels: the rows that the same samples have with theirs, whatever the type of their numbers
code 0 "$tandem" predict waves-run new/x.npy
cp "$out" new.csv
same "$(head -n 1 new.csv)" "index,class,probability,0,1" "first row"
same "$(cut -d, -f2 new.csv | tail -n +2 | tr '\n' ' ')" "0 1 0 1 0 1 0 1 0 " classes
for pair in "big x" "integers whole"; do
    for name in $pair; do code 0 "$tandem" predict waves-run new/$name.npy --out $name.npy; done
    cmp ${pair% *}.npy ${pair#* }.npy || fail "other outputs of ${pair% *}.npy"
done
code 0 "$tandem" predict waves-run data.train.holdout=0 data.eval.holdout=0 'data.eval.range=[0, 9]' --out labelled.npy
cmp labelled.npy x.npy || fail "other outputs without labels"
code 0 "$tandem" predict waves.yaml --weights waves-run new/x.npy --out new.jsonl
same "$(wc -l <new.jsonl)" 9 rows
has new.jsonl '{"index":8,"class":"0","probability":'
code 0 "$tandem" predict amounts-run amounts/x.npy
has "$out" "index,value"
code 0 "$tandem" train amounts.yaml --run-dir two-run train.epochs=1 data.train.x=two/x.npy data.train.y=two/y.npy \
    data.eval.x=two/x.npy data.eval.y=two/y.npy "model.layers=[flatten, {linear: 2}]"
code 0 "$tandem" predict two-run two/x.npy
has "$out" "index,output_0,output_1"
code 0 "$tandem" predict two-run two/x.npy --out two.jsonl
has two.jsonl '{"index":0,"outputs":['
code 4 "$tandem" predict waves-run new/short.npy
has "$err" "new/short.npy: the model needs samples of shape [2, 40] (model.input), found [2, 39]"
code 4 "$tandem" predict waves-run objects/x.npy
has "$err" "Python objects instead of numbers"
code 4 "$tandem" predict waves-run none.npy
has "$err" "none.npy"
code 2 "$tandem" predict waves-run new/x.npy new/big.npy
has "$err" "one array at a time; new/big.npy is one too many"

refused() { # FOLDER TEXT
    code 4 "$tandem" init --task series --data "$1" -o none.yaml
    has "$err" "$2"
    [ -e none.yaml ] && fail "none.yaml was made"
}
refused one "1 sample; to train and to test there must be at least 5"
refused fewer "holds 60 samples, y"
refused same "all labels are 3"
refused large "60 samples have labels up to 7001"
refused nan "sample 7 holds NaN at [1, 3]"
refused uneven "sample 17 ends after 30 of 40 points, the rest is NaN"
refused deep "each sample is [2, 4, 10]"
refused objects "Python objects instead of numbers, as NumPy saves samples of unequal size"
refused alone "series need a file of labels: name it with --target"
refused far "targets have mean 1050 and deviation 50"
refused nothing "'nothing' cannot be found"
code 2 "$tandem" init --task series
has "$err" "needs \`--data FOLDER\`, with x.npy and y.npy"
code 2 "$tandem" init --task toy-mp --target y.npy

# The sample's losses are PyTorch's (make_series_curve.py), where every batch has all samples.
code 0 "$tandem" train "$SAMPLES/series/gestures.yaml" --mode single --quiet --run-dir curve parallel.device_ids=[0] \
    data.train.holdout=0 data.eval.holdout=0 eval.every=never train.epochs=null train.steps=20 train.batch.global=160 log.every='1 step'
python3 - "$(dirname "$0")/series_curve.txt" <<'PY' || fail "another curve than PyTorch's"
import json, sys
want = [float(line) for line in open(sys.argv[1])]
got = [json.loads(line)["loss"] for line in open("curve/metrics.jsonl") if '"kind":"train"' in line]
assert len(got) == len(want) == 20
assert all(abs(a / b - 1) < 2e-6 for a, b in zip(got, want)), got
PY
