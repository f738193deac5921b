# eval, predict and ckpt over what a run has saved, and over damaged files.
. "$(dirname "$0")/support.sh"
toy
code 0 "$tandem" train toy.yaml --run-dir a --quiet
step=a/checkpoints/step-00000040

code 0 "$tandem" eval toy.yaml --weights a -o eval.json
has "$out" "samples 50"
same "$(json eval.json samples)" 50 samples
same "$(json eval.json accuracy)" "$(printf %.9g "$(json a/summary.json accuracy)")" accuracy
code 0 "$tandem" eval toy.yaml --weights $step/model.safetensors
code 0 "$tandem" eval toy.yaml --weights $step --split train
has "$out" "samples 200"
# a run directory stands for its own configuration and newest checkpoint, a checkpoint for itself
for folder in a a/ $step; do
    code 0 "$tandem" eval $folder -o folder.json
    cmp -s eval.json folder.json || fail "eval $folder is not eval toy.yaml --weights a"
done
code 0 "$tandem" eval a --split train data.train.range='[0, 30]'
has "$out" "samples 30"
mkdir empty
code 3 "$tandem" eval empty
has "$err" "empty is not a run directory: it has no config.resolved.yaml"
hasnt "$err" "newest run"
# a folder above run directories: the newest of them is named
mkdir -p above/b above/deep
cp -r a above/b/old && cp -r a above/deep/new && touch -d 2001-01-01 above/b/old/status.json
ln -s "$work" above/around
newest() { # LACK CODE COMMAND...
    code "$2" "$tandem" "${@:3}"
    has "$err" "$1"
    has "$err" "the newest run in it is above/deep/new"
}
newest "above is not a run directory: it has no config.resolved.yaml" 3 eval above
newest "above/ is not a run directory" 3 predict above/
newest "is not a run directory: it has no metrics.jsonl" 4 report above
newest "above holds no checkpoint" 8 ckpt show above
newest "above holds no checkpoint" 8 ckpt verify above
newest "above holds no checkpoint" 8 ckpt diff a above
newest "error: above: " 8 eval toy.yaml --weights above
code 0 "$tandem" ckpt ls above
has "$out" "no checkpoints in above"
has "$err" "the newest run in it is above/deep/new"
code 8 "$tandem" ckpt verify empty
code 0 "$tandem" ckpt verify a/checkpoints
# what may not be looked at is not missing
unprivileged=()
[ "$(id -u)" -eq 0 ] && unprivileged=(setpriv --bounding-set=-dac_override,-dac_read_search)
for mode in 000 111 444; do
    "${unprivileged[@]}" true || break # this root cannot be one who may not
    for folder in closed closed/checkpoints; do
        cp -r a closed && chmod $mode $folder
        for verb in ls show verify "diff a"; do
            code 10 "${unprivileged[@]}" "$tandem" ckpt $verb closed
            has "$err" "Permission denied"
            hasnt "$err" "no checkpoint"
        done
        chmod 755 $folder && rm -r closed
    done
done
code 4 "$tandem" report toy.yaml
has "$err" "toy.yaml/metrics.jsonl cannot be read: not a folder"
code 2 "$tandem" eval toy.yaml
has "$err" "no weights given"
code 8 "$tandem" eval toy.yaml --weights nowhere
code 8 "$tandem" eval toy.yaml --weights a model.layers='[{linear: {name: fc1, out: 17}}, relu, {linear: {name: fc2, out: 4}}]'
# weights of another model: no key that nobody wrote, and the way out, which works
for verb in eval predict; do
    code 8 "$tandem" $verb toy.yaml --weights a 'model.layers=[{linear: {name: other, out: 4}}]'
    has "$err" "error: a: this model has no tensor 'fc1."
    has "$err" ", which the file has"
    has "$err" "; weights fit only the model that they were trained with, which config.resolved.yaml"
    hasnt "$err" "model.weights"
    code 0 "$tandem" $verb a/config.resolved.yaml --weights a
done

code 0 "$tandem" predict toy.yaml --weights a
same "$(wc -l <"$out")" 51 "lines of CSV"
has "$out" "index,label,predicted,score_0,score_1,score_2,score_3"
cp "$out" predicted.csv
code 0 "$tandem" predict a
cmp -s "$out" predicted.csv || fail "predict a is not predict toy.yaml --weights a"
code 0 "$tandem" predict toy.yaml --weights a --out p.jsonl
same "$(wc -l <p.jsonl)" 50 "lines of JSONL"
has p.jsonl '"scores":['
code 0 "$tandem" predict toy.yaml --weights a --out p.npy
same "$(head -c 6 p.npy | tail -c 5)" NUMPY "magic"
same "$(stat -c %s p.npy)" $((128 + 50 * 4 * 4)) "bytes of .npy"
code 2 "$tandem" predict toy.yaml --weights a --out p.txt
hasnt "$err" "NaN or infinite"
# outputs that are not finite are written, and told once
python3 - <<'PY'
import struct
def npy(name, kind, shape, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)
    head += " " * (118 - len(head) - 1) + "\n"
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)
rows = [[float("inf") if i in (5, 9) else k / 10 for k in range(10)] for i in range(12)]
npy("x.npy", "<f4", "(12, 10)", b"".join(struct.pack("<10f", *r) for r in rows))
npy("y.npy", "<i8", "(12,)", b"".join(struct.pack("<q", i % 4) for i in range(12)))
PY
huge='data.eval={format: npy, x: x.npy, y: y.npy}'
code 0 "$tandem" predict toy.yaml --weights a "$huge"
same "$(wc -l <"$out")" 13 "rows"
has "$err" "2 of the samples have outputs that are NaN or infinite; the first is sample 5: output"
same "$(grep -c 'NaN or infinite' "$err")" 1 "warnings"

code 0 "$tandem" ckpt ls a
has "$out" step-00000040
code 0 "$tandem" ckpt ls a --json
code 0 "$tandem" ckpt show $step
has "$out" "fc1.weight"
code 0 "$tandem" ckpt verify a
code 8 "$tandem" ckpt verify nowhere
code 0 "$tandem" train toy.yaml --run-dir b --quiet seed=8
code 12 "$tandem" ckpt diff a b
has "$out" "first differing tensor: fc1.bias"
has "$out" "largest difference"
code 0 "$tandem" ckpt diff a b --atol 100
has "$out" "within the tolerance"
code 8 "$tandem" ckpt diff a nowhere
for decay in 0.5 0.9; do code 0 "$tandem" train toy.yaml --run-dir ema$decay --quiet train.ema.decay=$decay; done
code 12 "$tandem" ckpt diff ema0.5 ema0.9
has "$out" "first differing tensor: fc1.bias, in ema.safetensors"

# nor is a good one under another name whole
cp -r $step step-21
code 12 "$tandem" ckpt verify step-21
has "$err" "checkpoint in it, step-00000040"

# one byte of a weight turned: verify says so with 12, a resume passes it over
cp -r a damaged
file=damaged/checkpoints/step-00000040/model.safetensors
size=$(stat -c %s $file)
printf '\xff\xfe' | dd of=$file bs=1 seek=$((size - 9)) conv=notrunc status=none
code 12 "$tandem" ckpt verify damaged
has "$out" "damaged"
has "$err" "model.safetensors"
code 0 "$tandem" train toy.yaml --run-dir damaged-twice "checkpoint.every=20 steps" --quiet
cp $file damaged-twice/checkpoints/step-00000040/
code 0 "$tandem" eval damaged-twice
has "$err" "step-00000040 is skipped"
code 0 "$tandem" train toy.yaml --run-dir damaged --steps 45
has "$err" "step-00000040 is skipped"
has "$err" "continued after step 39"
code 8 "$tandem" eval toy.yaml --weights damaged/checkpoints/step-00000040

# training, eval and predict make the same batches, which decide where a layer takes the batch's own statistics
cat >batch.yaml <<'YAML'
tandem: 1
name: batch
seed: 7
model:
  input: [2, 4, 4]
  layers:
    - conv2d: {name: conv, out: 4, kernel: 3}
    - batchnorm2d: {name: norm, track_running_stats: false}
    - relu
    - flatten
    - linear: {name: head, out: 3}
data:
  train: {format: synthetic, samples: 60}
  eval: {format: synthetic, samples: 50, seed: 9}
loss: cross_entropy
optimizer: {type: sgd, lr: 0.05}
train: {epochs: 1, batch: {global: 24}}
parallel: {device_ids: [0, 1]}
YAML
for mode in single dp ddp; do
    for more in train.accumulate=1 train.accumulate=3 eval.batch=7 eval.batch=50; do
        code 0 "$tandem" train batch.yaml --quiet --mode $mode --run-dir "e-$mode-$more" $more
        code 0 "$tandem" eval batch.yaml --weights "e-$mode-$more" -o eval.json $more
        trained=$(grep '"kind":"eval"' "e-$mode-$more/metrics.jsonl" | tail -1 | sed -E 's/.*"loss":([^,}]*).*/\1/')
        same "$(json eval.json loss)" "$trained" "losses of $mode $more"
        code 0 "$tandem" predict batch.yaml --weights "e-$mode-$more" $more
        hits=$(awk -F, 'NR > 1 && $2 == $3 { n++ } END { print n + 0 }' "$out")
        same "$(awk "BEGIN { printf \"%.9g\", $hits / 50 }")" "$(json eval.json accuracy)" "hits of $mode $more"
    done
done
same "$(cat e-single-eval.batch=7/metrics.jsonl | grep -o '"kind":"eval".*')" \
     "$(cat e-ddp-eval.batch=7/metrics.jsonl | grep -o '"kind":"eval".*')" "evaluations of single and ddp"
code 0 "$tandem" eval batch.yaml --weights e-single-eval.batch=7 -o a.json eval.batch=7
code 0 "$tandem" eval batch.yaml --weights e-single-eval.batch=7 -o b.json eval.batch=8
[ "$(json a.json loss)" != "$(json b.json loss)" ] || fail "eval.batch changes nothing"

# export: one file that is the model
code 0 "$tandem" export a -o m.tandem
has "$out" "m.tandem: "
has "$out" "step 40"
code 0 "$tandem" export $step --out m.safetensors
cmp -s m.tandem m.safetensors || fail "export of a run is not that of its newest checkpoint"
code 0 "$tandem" export m.tandem -o again.tandem
code 0 "$tandem" ckpt diff m.tandem again.tandem
has "$out" "every bit"
code 0 "$tandem" ckpt verify m.tandem
code 0 "$tandem" show m.tandem loss.type
same "$(cat "$out")" cross_entropy loss.type
code 0 "$tandem" predict toy.yaml --weights m.tandem
cmp -s "$out" predicted.csv || fail "predict --weights m.tandem is not that of its run"
# a model is no job, and becomes one
code 3 "$tandem" train m.tandem
has "$err" "m.tandem is a model, not a job; \`tandem show m.tandem >job.yaml\` makes one without data"
"$tandem" show m.tandem >update.yaml
code 0 "$tandem" train update.yaml model.weights=m.tandem train.steps=2 train.batch.per_device=4 --run-dir update \
    data.train='{format: synthetic}'
code 0 "$tandem" export update -o newer.tandem
code 12 "$tandem" ckpt diff m.tandem newer.tandem
code 2 "$tandem" export a
has "$err" "-o model.tandem"
code 2 "$tandem" export a -o model.bin
has "$err" "must end in .tandem or .safetensors"
code 2 "$tandem" export a -o m.tandem
has "$err" "m.tandem already exists"
code 0 "$tandem" export --onnx a -o m.onnx
has "$out" "m.onnx: "
[ "$(head -c 10 m.onnx | tail -c 8 | tr -d '\022\006')" = tandem ] || fail "m.onnx does not begin as an ONNX file of tandem"
for verb in show predict train eval plan check; do
    code 3 "$tandem" $verb m.onnx
    has "$err" "m.onnx is a network, not a job; \`tandem init --onnx m.onnx -o m.yaml\` makes a job of it"
done
code 3 "$tandem" check none.onnx
has "$err" "none.onnx: cannot be opened"
code 8 "$tandem" export m.onnx -o m2.tandem
has "$err" "m.onnx is a network, not a model of tandem; \`tandem init --onnx m.onnx -o m.yaml\` makes a job of it"
cp m.onnx noend
code 4 "$tandem" init --onnx noend
has "$err" "/noend: an ONNX file is known by its name, which must end in .onnx; rename it"
code 2 "$tandem" export --onnx a
has "$err" "-o model.onnx"
code 0 "$tandem" export --onnx m.tandem -o again.onnx
cmp -s m.onnx again.onnx || fail "ONNX of the exported file is not that of the run"
code 2 "$tandem" export --onnx a -o m.tandem
has "$err" "must end in .onnx"
code 2 "$tandem" export a -o none.onnx
has "$err" "--onnx"
code 8 "$tandem" export a --checkpoint 7 -o none.tandem
code 2 "$tandem" export m.tandem --checkpoint best -o none.tandem
code 8 "$tandem" export above -o none.tandem
has "$err" "the newest run in it is above/deep/new"
code 2 "$tandem" predict m.tandem
has "$err" "m.tandem is a model and has no data; give pictures, a table or an array, or 'data.eval={format: ...}'"
code 2 "$tandem" eval m.tandem
has "$err" "m.tandem is a model and has no data; give 'data.eval={format: ...}'"
code 2 "$tandem" eval m.tandem --split train "$huge"
code 0 "$tandem" eval m.tandem "$(sed -n 's/^  eval: /data.eval=/p' toy.yaml)" -o of_model.json
code 0 "$tandem" eval toy.yaml --weights m.tandem -o of_job.json
cmp -s of_job.json of_model.json || fail "eval of a model file is not that of its job"
head -c 300 m.tandem >cut.tandem
code 8 "$tandem" predict cut.tandem x.npy
has "$err" "cut.tandem: cut short"
code 0 "$tandem" ckpt convert m.tandem plain.pt
code 0 "$tandem" ckpt convert plain.pt plain.safetensors
code 8 "$tandem" predict plain.safetensors x.npy
has "$err" "does not carry its model"
