# The best checkpoint, early stopping, the average and TensorBoard, as the command has them.
. "$(dirname "$0")/support.sh"
toy
code 0 "$tandem" train toy.yaml --run-dir a eval.every='4 steps' checkpoint.keep_best=loss checkpoint.keep_last=1 \
    train.ema.decay=0.9 log.tensorboard=true --quiet
best=$(cat a/checkpoints/best)
step=$((10#${best#step-}))
[ -d "a/checkpoints/$best" ] || fail "a/checkpoints/best names $best, which is not there"
same "$(json a/summary.json best_step)" "$step" best_step
same "$(json a/evaluation.best.json step)" "$step" "step of evaluation.best.json"
[ -f "a/checkpoints/$best/ema.safetensors" ] || fail "no average in $best"
[ "$(find a/tensorboard -name 'events.out.tfevents.*.tandem' -size +100c | wc -l)" -eq 1 ] || fail "no event file"
grep -qF "confusion matrix" a/report.html || fail "report.html has no confusion matrix"

# the average of that checkpoint is what was evaluated
code 0 "$tandem" eval a --checkpoint best -o best.json
same "$(printf %.6g "$(json best.json loss)")" "$(printf %.6g "$(json a/evaluation.best.json loss)")" "loss of the best"
for name in $step a/checkpoints/best; do
    flags=(--checkpoint "$name")
    [ "$name" = "$step" ] || flags=(--weights "$name")
    code 0 "$tandem" eval a "${flags[@]}" -o other.json
    cmp -s best.json other.json || fail "eval a ${flags[*]} is not eval a --checkpoint best"
done
code 0 "$tandem" eval a --checkpoint best eval.weights=model -o model.json
cmp -s best.json model.json && fail "eval.weights changes nothing"
code 0 "$tandem" predict a --checkpoint best -o best.csv
code 2 "$tandem" eval a --checkpoint newest
has "$err" "\`--checkpoint\` must be best, latest or a step, got \`newest\`"
echo nonsense >a/checkpoints/best
code 8 "$tandem" eval a --checkpoint best
has "$err" "expected one line with the name of a checkpoint"
rm a/checkpoints/best
code 8 "$tandem" eval a --checkpoint best
has "$err" "checkpoint.keep_best"
# the next run repairs it
code 0 "$tandem" train toy.yaml --run-dir a eval.every='4 steps' checkpoint.keep_best=loss train.ema.decay=0.9 --quiet
same "$(cat a/checkpoints/best)" "$best" "a/checkpoints/best"
code 0 "$tandem" ckpt verify a
code 0 "$tandem" plan toy.yaml train.ema.decay=0.9
has "$out" "  ema "

# a run that does not improve ends as one that is finished
early=(eval.every='4 steps' train.stop_early.after=2 train.stop_early.metric=loss train.stop_early.min_delta=1000)
code 0 "$tandem" train toy.yaml --run-dir e "${early[@]}"
has "$out" "stopped early"
same "$(json e/summary.json step)" 12 "step of the end"
grep -qF "train.stop_early: loss has not improved in 2 evaluations" e/status.json || fail "no reason in status.json"
code 0 "$tandem" train toy.yaml --run-dir e "${early[@]}"
has "$err" "nothing to do: train.stop_early has ended $work/e after step 12"
code 0 "$tandem" train toy.yaml --run-dir e eval.every='4 steps' --quiet
same "$(json e/summary.json step)" 40 "step after the rule was taken out"
code 3 "$tandem" train toy.yaml --run-dir n checkpoint.keep_best=top5 --quiet
has "$err" "top5 needs more than 5 classes"

# weights of any number of classes, with the same bits in all modes
many() { # COUNT WEIGHTS
    echo "tandem: 1"
    echo "model: {input: [8], layers: [{linear: $1}]}"
    echo "data: {train: {format: synthetic, samples: 64}, eval: {format: synthetic, samples: 32, seed: 2}}"
    echo "loss: {type: cross_entropy, label_smoothing: 0.1, weight: [$2]}"
    echo "optimizer: {type: sgd, lr: 0.1}"
    echo "train: {steps: 3, batch: {per_device: 8}}"
    echo "parallel: {device_ids: [0, 1], dp: {scatter: strided}}"
}
weights() { # COUNT
    awk -v count="$1" 'BEGIN { for (i = 0; i < count; i++) printf "%s%g", i ? ", " : "", 0.25 + i % 7 / 4 }'
}
many 1000 "$(weights 1000)" >many.yaml
for mode in single dp ddp; do
    code 0 "$tandem" train many.yaml --mode $mode --run-dir many-$mode --quiet
done
same "$(json many-dp/summary.json params_xxh3)" "$(json many-single/summary.json params_xxh3)" "params_xxh3 of dp"
same "$(json many-ddp/summary.json params_xxh3)" "$(json many-single/summary.json params_xxh3)" "params_xxh3 of ddp"
code 0 "$tandem" train many.yaml --mode single --run-dir equal --quiet loss.weight=null
[ "$(json equal/summary.json params_xxh3)" != "$(json many-dp/summary.json params_xxh3)" ] || fail "weights change nothing"
code 0 "$tandem" eval many-ddp
code 0 "$tandem" train many.yaml --mode single --run-dir many-single --steps 5 --quiet
many 100 "$(weights 99)" >short.yaml
code 3 "$tandem" check short.yaml
has "$out" "loss.weight has 99 numbers, but the model gives 100 classes; write one for each"
code 0 "$tandem" check short.yaml "loss.weight=[$(weights 100)]"
many 9000 "$(weights 9000)" >large.yaml
code 3 "$tandem" check large.yaml
has "$out" "the file has more than 8,192 values and brackets"
