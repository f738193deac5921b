# One process trains: what is written, what is shown, how a run goes on.
. "$(dirname "$0")/support.sh"
toy

code 0 "$tandem" train toy.yaml --run-dir a
for file in config.input.yaml config.resolved.yaml env.json status.json metrics.jsonl summary.json report.html \
    logs/rank-0.log checkpoints/latest checkpoints/step-00000040/model.safetensors; do
    [ -s "a/$file" ] || fail "a/$file is missing or empty"
done
cmp -s toy.yaml a/config.input.yaml || fail "config.input.yaml is not the file"
has "$out" "tandem eval $work/a"
has "$out" "look at $work/a/report.html"
has "$err" "per device 8 x 2 = 16 per step"
has "$err" "steps/epoch"
has "$err" "exits with code 75"
has "$err" "--run-dir"
has "$err" "step 40/40  100%"
same "$(grep -c '"kind":"train"' a/metrics.jsonl)" 4 "train lines"
same "$(json a/summary.json step)" 40 step
[ "$(grep -cvE '^(step|epoch|finished)' "$err")" -le 14 ] || fail "the banner has more than 14 lines"

# the configuration that a run keeps runs the same job
code 0 "$tandem" train a/config.resolved.yaml --run-dir b --quiet
same "$(wc -c <"$err")" 0 "stderr of a quiet run"
same "$(json a/summary.json params_xxh3)" "$(json b/summary.json params_xxh3)" params_xxh3

# 15 steps, then to 40: the bits of 40 at once
code 0 "$tandem" train toy.yaml --run-dir c --steps 15
code 0 "$tandem" train toy.yaml --run-dir c --steps 40
has "$err" "continued after step 15"
same "$(json a/summary.json params_xxh3)" "$(json c/summary.json params_xxh3)" "params_xxh3 after a resume"
code 0 "$tandem" ckpt diff a c
has "$out" "equal"
code 0 "$tandem" train toy.yaml --run-dir c --steps 40
has "$err" "nothing to do"
same "$(json a/summary.json params_xxh3)" "$(json c/summary.json params_xxh3)" "params_xxh3 after nothing"

# another mode goes on from it; never begins again; a path is a path
code 0 "$tandem" train toy.yaml --run-dir c --steps 50 --mode dp
same "$(json c/summary.json step)" 50 step
code 0 "$tandem" train toy.yaml --run-dir d --steps 5 --resume never
code 0 "$tandem" train toy.yaml --run-dir e --steps 60 --resume c
has "$err" "continued after step 50"

# a run directory of another model: which folder, and the way out, which works
other='model.layers=[{linear: {name: other, out: 4}}]'
code 8 "$tandem" train toy.yaml --run-dir e --steps 70 "$other"
has "$err" "e/checkpoints/step-00000060: this model has no tensor 'fc1."
has "$err" "this model has no tensor"
has "$err" "--run-dir"
has "$err" "checkpoint.resume=never"
code 8 "$tandem" train toy.yaml --run-dir new --resume e "$other"
has "$err" "e/checkpoints/step-00000060: "
has "$err" ", which the file has"
has "$err" "; checkpoint.resume needs a checkpoint of this model"
code 8 "$tandem" train toy.yaml --run-dir new model.weights=e "$other"
has "$err" "error: command line: model.weights: $PWD/e: this model has no tensor 'fc1."
has "$err" ", which the file has"
has "$err" "; weights fit only the model that they were trained with, which config.resolved.yaml"
code 0 "$tandem" train toy.yaml --run-dir e --steps 5 "$other" checkpoint.resume=never

code 0 "$tandem" train toy.yaml --dry-run
has "$err" "a dry run writes nothing"
code 0 "$tandem" train toy.yaml run.dir=null
has "$out" "params_xxh3"
[ -e runs ] && fail "runs/ was made without being asked for"

# --run-dir is used exactly, whatever it looks like
for name in 'my dir' 'a: b' '[x]' '#h' null 'q"q' '训练'; do
    code 0 "$tandem" train toy.yaml --run-dir "$name" --mode ddp --steps 2 --quiet
    [ -s "$name/summary.json" ] || fail "no run in '$name'"
done

# a bar where one is asked for, plain lines elsewhere
code 0 "$tandem" train toy.yaml run.dir=null log.progress=always
has "$err" "100%|"
has "$err" "40/40 ["
code 0 "$tandem" train toy.yaml run.dir=null log.progress=always train.epochs=2 train.steps=null
has "$err" "epoch 2/2 100%|"
code 0 "$tandem" train toy.yaml run.dir=null log.progress=never
hasnt "$err" "%|"

# the file's own run directory, beside the file
mkdir far && cp toy.yaml far/
code 0 "$tandem" train far/toy.yaml
ls far/runs/toy/*/summary.json >/dev/null 2>&1 || ls runs/toy/*/summary.json >/dev/null 2>&1 || fail "no run under runs/toy"

# a page about it, in Chinese too
code 0 "$tandem" report a
has "$out" "a/report.html"
has a/report.html "<svg"
has a/report.html 'lang="en"'
code 0 "$tandem" report a --against c -o both.html --lang zh
has both.html 'lang="zh-CN"'
hasnt both.html "http"
# of a file larger than a report needs, some steps are read, and every evaluation
cp -r a long
{ yes '{"kind":"train","step":1,"loss":0.5,"lr":0.1,"samples_per_s":7,"ms":{"step":2}}' | head -n 900000
    echo '{"kind":"eval","step":77777,"loss":0.25}'; } > long/metrics.jsonl
code 0 "$tandem" report long
has long/report.html "77,777"
rm -r long
code 4 "$tandem" report nowhere

# without data to evaluate there is nothing to evaluate next
code 0 "$tandem" train toy.yaml data.eval=null --steps 2 --run-dir no-eval
hasnt "$out" "tandem eval"

# two runs of one mode go by the names of their folders
code 0 "$tandem" report a --against no-eval/ -o same.html
has same.html '<th>a</th><th>no-eval</th>'
# two starts in one second are two runs
for _ in 1 2 3; do code 0 "$tandem" train toy.yaml --steps 1 --quiet; done
same "$(ls -d runs/toy/* | wc -l)" 3 "run directories"
# a batch larger than the data is reported, and so is a lack of memory
code 0 "$tandem" train toy.yaml --steps 1 --run-dir large train.batch.per_device=5000
has "$err" "a step takes 10000 samples and data.train has"
code 6 "$tandem" train toy.yaml --run-dir huge data.train.samples=10000000 train.batch.per_device=10000000 \
    model.layers='[{linear: 300000}, {linear: 4}]'
has "$err" "TiB, beside the "
has "$err" "make train.batch.per_device smaller"
code 6 "$tandem" train toy.yaml --run-dir huge eval.batch=10000000 model.layers='[{linear: 300000}, {linear: 4}]'
has "$err" "TiB, beside the "
has "$err" "; make eval.batch smaller: it has 10000000 rows, a training pass "
hasnt "$err" "train.batch"
# oneDNN asks for 128 MiB of addresses, where it is in this build; a sanitizer's program wants more to begin with
little="$((140 * 1024))"
if "$tandem" doctor | grep -q "dnnl .*usable" && (ulimit -v $little && "$tandem" --version) >"$out" 2>&1; then
    code 6 bash -c 'ulimit -v "$1"; exec "${@:2}"' - $little "$tandem" train toy.yaml --run-dir little \
        parallel.mode=single parallel.threads_per_device=1 data.workers=0
    has "$err" "oneDNN is out of memory"
    has "$err" "make train.batch.per_device or eval.batch smaller"
fi
