# Weights to start from: other types, other names, parts of a model. make_weights.py made the files.
. "$(dirname "$0")/support.sh"
weights=$here/weights
cat >job.yaml <<'YAML'
tandem: 1
model:
  input: [8]
  layers: [{linear: {name: fc1, out: 4}}, relu, {linear: {name: fc2, out: 3}}]
data: {train: {format: synthetic, samples: 16}}
optimizer: {type: sgd, lr: 0}
train: {steps: 1, batch: {per_device: 8}}
checkpoint: {every: 1 step}
parallel: {device: cpu}
YAML
train() { # STATUS RUN-DIR FILE KEYS...
    local status=$1 dir=$2 file=$3
    shift 3
    code "$status" "$tandem" train job.yaml --run-dir "$dir" "model.weights=$weights/$file.safetensors" "$@"
}

# doubles, halves and bfloat16 become the floats that torch makes of them; prefixes are renamed
train 0 plain float
hasnt "$err" "tensors loaded"
train 0 mixed mixed 'model.rename={backbone.: ""}'
code 0 "$tandem" ckpt diff plain mixed
code 0 "$tandem" ckpt diff mixed "$weights/float.safetensors"
same "$(json mixed/weights.json file)" "$weights/mixed.safetensors" file
train 8 twice mixed 'model.rename={backbone.fc2: fc1, backbone.: ""}'
has "$err" "both become 'fc1."
train 8 large large
has "$err" "has 1e+300 at element 1, which is beyond the largest float"
hasnt "$err" "weights fit only" # another model would not help

# strict: one sentence, with the first fault and how many more
train 8 bad other
has "$err" "tensor 'fc2.weight' has shape 3x4, in the file 5x4 (and 2 more tensors)"
train 8 bad other 'model.skip=[fc2.weight]'
has "$err" "this model has no tensor 'fc3.bias', which the file has (and 1 more tensor)"
train 8 bad other 'model.skip=["fc[0-9].*"]'
has "$err" "model.skip: no tensor of this model matches 'fc[0-9].*'"

# not strict: what fits is loaded, the rest is told
train 0 part other model.strict=false
has "$err" "2 of 4 tensors loaded, 1 missing in the file, 1 of another shape; 1 of the file is not used"
tr -d ' \n' <part/weights.json >line
has line '"loaded":["fc1.weight","fc1.bias"],"skipped":[],"missing":["fc2.bias"]'
has line '"another_shape":[{"name":"fc2.weight","model":"3x4","file":"5x4"}],"unexpected":["fc3.bias"]'
train 0 head float 'model.skip=[fc2.*]'
has "$err" "2 of 4 tensors loaded, 2 skipped"
train 0 fresh float model.weights=null
code 12 "$tandem" ckpt diff head fresh
has "$out" "2 of 4"
train 8 none stranger model.strict=false
has "$err" "0 of 4 tensors match by name and shape; the file has 'stem.weight', the model 'fc1.weight'"
hasnt "$err" "model.strict: false"

# what a run goes on from is whole
code 0 "$tandem" train job.yaml --run-dir part --steps 2 model.strict=false 'model.skip=[fc1.*]'
code 0 "$tandem" eval job.yaml --weights part 'model.skip=[fc1.*]' 'data.eval={format: synthetic, samples: 8}'

# frozen parameters stay as they are, in every checkpoint; a run goes on with other groups, and says so
train 0 frozen float optimizer.lr=0.1 'model.freeze=[fc1.*]'
code 12 "$tandem" ckpt diff frozen plain
has "$out" "2 of 4 tensors"
code 0 "$tandem" train job.yaml --run-dir frozen --steps 2 'model.freeze=[fc1.*]' \
    'optimizer.groups=[{params: "*.bias", lr: 0.5, weight_decay: 0}]'
has "$err" "optimizer.groups"
train 0 adam float optimizer.type=adam 'model.freeze=[fc1.*]'
hasnt adam/checkpoints/step-00000001/optimizer.safetensors fc1
code 8 "$tandem" train job.yaml --run-dir adam --steps 2 optimizer.type=adam
has "$err" "exp_avg.fc1.weight"
code 0 "$tandem" plan job.yaml 'model.freeze=[fc1.*]' 'optimizer.groups=[{params: "*.bias", lr: 0.5}]'
has "$out" "frozen: 2 of 4 tensors, 36 of 51 numbers"
has "$out" "group 1: *.bias, 1 tensor, 3 numbers"
