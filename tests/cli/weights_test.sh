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

# a file of PyTorch, as it is: the same bits, also in ranks, and for other verbs; by what is in it, whatever its name
torch=$here/../ckpt/torch
code 0 "$tandem" ckpt convert "$weights/float.safetensors" float.pt
cp float.pt float.bin
for file in float.pt float.bin; do
    code 0 "$tandem" train job.yaml --run-dir "of-$file" "model.weights=$file"
    hasnt "$err" "tensors loaded"
    code 0 "$tandem" ckpt diff plain "of-$file"
done
code 0 "$tandem" train job.yaml --run-dir ranks --mode ddp 'parallel.device_ids=[0, 1]' model.weights=float.pt
code 0 "$tandem" ckpt diff plain ranks
code 0 "$tandem" ckpt verify float.pt
code 0 "$tandem" ckpt diff float.pt "$weights/float.safetensors"
code 0 "$tandem" ckpt show float.pt
has "$out" "fc1.weight  F32 [4, 8]"
code 0 "$tandem" eval job.yaml --weights float.pt 'data.eval={format: synthetic, samples: 8}'
net=("model.input=[2, 2, 2]" "model.layers=[{conv2d: {out: 3, kernel: 1}}, batchnorm2d, flatten]")
code 0 "$tandem" train job.yaml --run-dir extra "${net[@]}" "model.weights=$torch/extra.pt" --verbose
has "$err" "extra.pt: 1 entry is no tensor and left out"
hasnt "$err" "tensors loaded"
# whoever makes all tensors halves makes halves of the counters of batch norm
for file in halves counted; do train 0 "of-$file" "$file" "${net[@]}"; done
code 0 "$tandem" ckpt diff of-halves of-counted
train 8 bad uncounted "${net[@]}"
has "$err" "tensor '1.num_batches_tracked' of the file counts batches and is 0.5"
torch() { # NAME SENTENCE
    code 8 "$tandem" train job.yaml --run-dir bad "${net[@]}" "model.weights=$torch/$1.pt"
    has "$err" "command line: model.weights: $torch/$1.pt: $2"
    same "$(grep -c "$1.pt" "$err")" 1 "lines about $1.pt"
}
torch parts "it has no dictionary 'state_dict' or 'model' of tensors; say which with \`tandem ckpt convert --key\`"
torch system "its pickle names posix.system, which is no tensor; nothing of it was run"
torch damaged "the storage of the tensor '0.weight' is damaged"
torch swollen "its tensors take more than 16 times the bytes of the file"
torch legacy "it has the format of before PyTorch 1.6"
echo text >text.pt
code 8 "$tandem" train job.yaml --run-dir bad model.weights=text.pt
has "$err" "text.pt: it was not written by torch.save: no zip archive"
code 12 "$tandem" ckpt verify "$torch/damaged.pt"
has "$err" "damaged.pt: the storage of the tensor '0.weight' is damaged"
code 12 "$tandem" ckpt verify "$torch/infinite.pt"
has "$err" "infinite.pt: tensor '"
code 2 "$tandem" ckpt convert "$torch/parts.pt" net.pt --key net
has "$err" "net.pt: a key chooses in a file of PyTorch that becomes a .safetensors file"

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
