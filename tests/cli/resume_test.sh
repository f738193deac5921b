# What has changed since the checkpoint: told with both values, or refused with the key.
. "$(dirname "$0")/support.sh"
toy
told() { # KEY WAS IS
    has "$err" "warning: checkpoint: changed since then: $1 was $2, is $3"
}

code 0 "$tandem" train toy.yaml --run-dir a --steps 10
hasnt "$err" "changed since"
code 0 "$tandem" train toy.yaml --run-dir a --steps 10
hasnt "$err" "changed since"
code 0 "$tandem" train toy.yaml --run-dir a --steps 14
told train.steps 10 14
same "$(grep -c 'changed since' "$err")" 1 "settings told"

# before the first step, in every mode once
for mode in single dp ddp; do
    cp -r a "a-$mode"
    code 0 "$tandem" train toy.yaml --run-dir "a-$mode" --mode $mode parallel.device_ids='[0, 1]' --steps 20 \
        optimizer.lr=0.5 'schedule={type: step, step_size: 3}' log.every='2 steps' \
        model.layers='[{linear: {name: fc1, out: 16}}, relu, {dropout: 0.5}, {linear: {name: fc2, out: 4}}]'
    told optimizer.lr "$(grep -oP '^  lr: \K.*' a/config.resolved.yaml)" 0.5
    told schedule.type constant step
    told schedule.step_size none 3
    told 'model.layers[3]' none "linear fc2 v3 out=4 bias=true in=null"
    same "$(grep -c 'optimizer.lr was' "$err")" 1 "lines about lr in $mode"
    awk '/changed since/ { last = NR } /step 16\// { first = first ? first : NR } END { exit !(last < first) }' "$err" ||
        fail "$mode: a change is told after a step"
done

# weights to begin with are told, for a run that goes on does not begin
cp -r a weighed
code 0 "$tandem" train toy.yaml --run-dir weighed --steps 15 model.weights=a
told "model.weights (which a run that goes on does not load)" null "$PWD/a"
code 0 "$tandem" train toy.yaml --run-dir weighed --steps 16 model.weights=a
hasnt "$err" "changed since then: model.weights"

# by path: where the run begins is no change
code 0 "$tandem" train toy.yaml --run-dir b --steps 18 --resume a
told train.steps 14 18
same "$(grep -c 'changed since' "$err")" 1 "settings told by path"

# what a run cannot go on with: the key, both values, what to do; the folder still tells of the run before, and only
# status.json of how this one ended
refused() { # PATTERN ARGUMENT...
    local pattern=$1
    shift
    for mode in single dp ddp; do
        code 8 "$tandem" train toy.yaml --run-dir a --mode $mode parallel.device_ids='[0, 1]' train.steps=20 "$@"
        grep -qE "error: .*$pattern" "$err" || fail "$mode $*: $(cat "$err")"
        same "$(grep -c 'error:' "$err")" 1 "errors of $mode $*"
        diff -r -x .lock -x status.json a-before a || fail "$mode $*: the folder is another"
    done
}
mkdir a/checkpoints/.step-00000003.tmp-999999999-0 # a process that was killed left it
cp -a a a-before
refused 'seed was 7 in .*step-00000014 and is 8 now: .*model.weights' seed=8
refused 'data.shuffle was true in .* and is false now' data.shuffle=false
refused 'data.train.samples was 200 in .* and is 199 now' data.train.samples=199
refused 'data.train.range was null in .* and is \[0, 100\] now' data.train.range='[0, 100]'
refused 'optimizer.type was (sgd|adam) in .* and is adamw now' 'optimizer={type: adamw, lr: 0.1}'
refused 'step-00000014 is of step 14, this job ends after 9 .*raise that' --steps 9
refused "this model has no tensor 'fc1.bias'" model.layers='[{linear: {name: other, out: 16}}, relu, {linear: {name: fc2, out: 4}}]'
refused 'nowhere: there is no such file' --resume never model.weights=nowhere
refused 'nowhere: there is no such file' --resume nowhere
code 0 "$tandem" train toy.yaml --run-dir a --steps 16 data.eval.samples=20
told data.eval.samples 50 20
code 0 "$tandem" train toy.yaml --run-dir c --steps 3 --resume never model.weights=a seed=8

# a state that was not kept
code 0 "$tandem" train toy.yaml --run-dir d --steps 4 'optimizer={type: sgd, lr: 0.1}'
code 8 "$tandem" train toy.yaml --run-dir d --steps 6 'optimizer={type: sgd, lr: 0.1, momentum: 0.9}'
has "$err" "optimizer.momentum: 0"
code 0 "$tandem" train toy.yaml --run-dir averages --steps 4 optimizer.type=adam
code 8 "$tandem" train toy.yaml --run-dir averages --steps 6 'optimizer={type: adam, amsgrad: true}'
has "$err" "'max_exp_avg_sq.fc1.weight'; was it saved with optimizer.amsgrad: false? Then resume with that"

# other parameters are frozen; what was frozen has no state to go on with
code 0 "$tandem" train toy.yaml --run-dir frozen --steps 4 optimizer.type=adam
code 0 "$tandem" train toy.yaml --run-dir frozen --steps 6 optimizer.type=adam 'model.freeze=[fc1.*, fc2.bias]'
told model.freeze '[]' '[fc1.*, fc2.bias]'
code 0 "$tandem" train toy.yaml --run-dir frozen --steps 8 optimizer.type=adam 'model.freeze=[fc1.*, fc2.bias]'
hasnt "$err" "model.freeze was"
code 8 "$tandem" train toy.yaml --run-dir frozen --steps 10 optimizer.type=adam
has "$err" "lacks this model's tensor 'exp_avg.fc1.weight'; was its parameter frozen then? Resume with the same model.freeze"

# other samples of the same shape in the same place; a checkpoint from before that was kept says nothing
code 0 "$tandem" data make digits --format npy --samples 40
sed 's/input: 10/input: [1, 28, 28]/; s/- linear: {name: fc1/- flatten\n    &/; s/out: 4}/out: 10}/' toy.yaml |
    sed 's|train: {format.*|train: {format: npy, x: digits/x.npy, y: digits/y.npy}|; /eval: {format/d' >npy.yaml
code 0 "$tandem" train npy.yaml --run-dir e --steps 4
code 0 "$tandem" train npy.yaml --run-dir e --steps 6
same "$(grep -c 'changed since' "$err")" 1 "settings told with the same samples"
rm -r digits
code 0 "$tandem" data make digits --format npy --samples 40 --seed 5
for mode in single dp ddp; do
    cp -r e "e-$mode"
    code 0 "$tandem" train npy.yaml --run-dir "e-$mode" --mode $mode --steps 8
    samples='40 of 1x28x28 [a-z]*, some of them hash to [0-9a-f]{32}'
    grep -qE "changed since then: data.train \(samples found\) was $samples, is $samples\$" "$err" || fail "$mode: $(cat "$err")"
    same "$(grep -c 'samples found' "$err")" 1 "lines about samples in $mode"
done
