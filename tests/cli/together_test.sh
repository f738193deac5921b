# What fine-tuning uses at once: frozen parts, groups, an average, transforms, mixed samples. The same bits in every mode, and
# after a restart.
. "$(dirname "$0")/support.sh"
cat >job.yaml <<'YAML'
tandem: 1
name: together
seed: 5
model:
  input: [3, 32, 32]
  freeze: [conv1.*, bn1.*, conv3.bias]
  layers: [{conv2d: {name: conv1, out: 8, kernel: 3, stride: 2}}, {batchnorm2d: {name: bn1}}, relu, {conv2d: {name: conv2, out: 16, kernel: 3}}, {batchnorm2d: {name: bn2}}, relu, {conv2d: {name: conv3, out: 16, kernel: 3}}, relu6, {adaptive_avgpool2d: 1}, flatten, {linear: {name: fc, out: 10}}]
data:
  train: {format: glyphs, samples: 24}
  eval: {format: glyphs, samples: 12, seed: 9}
  transform: [{random_crop: {size: 32, padding: 2}}, random_horizontal_flip, mixup, cutmix, to_float]
optimizer: {type: sgd, lr: 0.05, momentum: 0.9, weight_decay: 1.0e-3, groups: [{params: "*.bias", weight_decay: 0}, {params: "fc.*", lr: 0.1}]}
train: {steps: 6, batch: {global: 8}, ema: {decay: 0.8, warmup: true}}
checkpoint: {every: 2 steps, keep_best: loss}
eval: {every: 2 steps}
parallel: {device: cpu, device_ids: [0, 1], threads_per_device: 1, dp: {scatter: strided}}
YAML
code 0 "$tandem" plan job.yaml
has "$out" "frozen: "
run() { # NAME ARGUMENT...
    code 0 "$tandem" train job.yaml --quiet --run-dir "$@"
}
run single --mode single
run dp --mode dp
run ddp --mode ddp
run again --mode dp --steps 3
run again --mode ddp
hash=$(json single/summary.json params_xxh3)
last=checkpoints/step-00000006
for name in dp ddp again; do
    same "$(json $name/summary.json params_xxh3)" "$hash" "params_xxh3 of $name"
    cmp -s single/$last/ema.safetensors $name/$last/ema.safetensors || fail "the averages of single and $name differ"
    code 0 "$tandem" ckpt diff single $name
done
code 0 "$tandem" eval again
