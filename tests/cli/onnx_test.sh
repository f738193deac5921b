# ONNX: networks of other programs become files that train them further; what tandem exports comes back.
# tests/onnx/make_files.py made the files.
. "$(dirname "$0")/support.sh"
files=$here/../onnx/files

# a network of PyTorch, without data: layers that can be read, the file as weights, and the same bits in all modes
code 0 "$tandem" init --onnx "$files/resnet_ts.onnx" -o net.yaml
has net.yaml "- conv2d: {name: layer1.0.conv1, out: 4, kernel: 3, padding: 1}"
has net.yaml "- linear: {name: fc, out: 5}"
has net.yaml "# freeze: [\"conv1.*\"]"
hasnt net.yaml "skip:"
code 0 "$tandem" check net.yaml
for mode in single dp ddp; do
    code 0 "$tandem" train net.yaml --mode $mode --run-dir $mode parallel.dp.scatter=strided
    hasnt "$err" "tensors loaded" # all were
done
code 0 "$tandem" ckpt diff single dp
code 0 "$tandem" ckpt diff single ddp
has "$out" "every bit"
code 12 "$tandem" ckpt diff single "$files/resnet_ts.onnx" # it has learned
code 0 "$tandem" train net.yaml --run-dir frozen 'model.freeze=["conv1.*", "layer1.*"]' optimizer.lr=0.1
code 12 "$tandem" ckpt diff frozen "$files/resnet_ts.onnx"
has "$out" "first differing tensor: fc."

# numbers that a layer looks up are drawn as such
code 0 "$tandem" init --onnx "$files/tokens_ts.onnx" -o tokens.yaml
for mode in single dp ddp; do
    code 0 "$tandem" train tokens.yaml --mode $mode --run-dir tokens-$mode parallel.dp.scatter=strided
    same "$(json tokens-$mode/summary.json params_xxh3)" "$(json tokens-single/summary.json params_xxh3)" "parameters of $mode"
done

# the file among other weights: shown, verified, converted, compared
code 0 "$tandem" ckpt show "$files/resnet_ts.onnx"
has "$out" "layer1.1.down.0.weight"
code 0 "$tandem" ckpt verify "$files/resnet_ts.onnx"
for to in safetensors pt; do
    code 0 "$tandem" ckpt convert "$files/lstm_dynamo.onnx" lstm.$to
    code 0 "$tandem" ckpt diff lstm.$to "$files/lstm_dynamo.onnx"
    has "$out" "every bit"
done
code 2 "$tandem" ckpt convert "$files/lstm_dynamo.onnx" other.safetensors --key a
has "$err" "a key chooses in a file of PyTorch"
code 10 "$tandem" ckpt convert "$files/lstm_dynamo.onnx" lstm.pt # exists

# weights of the one in layers of another: what fits is loaded
cat >head.yaml <<YAML
tandem: 1
model:
  input: [3, 12, 12]
  weights: $files/resnet_dynamo.onnx
  strict: false
  layers: [{conv2d: {name: conv1, out: 4, kernel: 3, padding: 1}}, relu, flatten, {linear: {name: fc, out: 5}}]
data: {train: {format: synthetic, samples: 16, classes: 5}}
loss: cross_entropy
optimizer: {type: sgd, lr: 0}
train: {steps: 1, batch: {per_device: 8}}
YAML
code 0 "$tandem" train head.yaml --run-dir head
has "$err" "3 of 4 tensors loaded, 1 of another shape"

# data of one's own: the last layer gets as many outputs as they need, and begins anew
for class in a b c; do
    mkdir -p photos/$class
    cp "$here"/../image/files/*.png photos/$class/ 2>/dev/null
done
if "$tandem" init --task images --data photos -o small.yaml 2>/dev/null; then # the module for pictures is there
    code 0 "$tandem" init --onnx "$files/resnet_ts.onnx" --task images --data photos -o photos.yaml
    has photos.yaml "- linear: {name: fc, out: 3}"
    has photos.yaml "skip: [\"fc.*\"]"
    has photos.yaml "random_resized_crop: {size: 12, scale: [0.5, 1]}"
    code 0 "$tandem" check photos.yaml
    code 4 "$tandem" init --onnx "$files/sizes_ts.onnx" --task images --data photos -o none.yaml
    has "$err" "sizes_ts.onnx takes samples of 1x6x8, and those of the data are 3x6x8"
    code 4 "$tandem" init --onnx "$files/activations_ts.onnx" --task images --data photos -o none.yaml
    has "$err" "activations_ts.onnx takes 6 numbers, no pictures"
fi
{
    echo "a,b,c,d,e,f,kind"
    for i in $(seq 60); do echo "$((i * 7 % 13)).5,$((i % 7)).5,$((i % 5)).25,$((i * 3 % 11)).5,$((i % 3)).5,$((i % 4)).5,$((i % 2))"; done
} >table.csv
code 0 "$tandem" init --onnx "$files/activations_ts.onnx" --task table --data table.csv -o table.yaml
has table.yaml "loss: nll"
has table.yaml "- linear: {name: f.8, out: 2}"
code 0 "$tandem" train table.yaml --run-dir table train.epochs=1
has "$err" "tensors loaded"
code 4 "$tandem" init --onnx "$files/resnet_ts.onnx" --task table --data table.csv -o none.yaml
has "$err" "takes samples of 3x12x12, and those of the data are 6"

# the last layer's outputs are not the model's: they cannot be chosen
sed -e 's/input: .*/input: 6/' -e '/weights:/d' -e '/strict:/d' -e '/layers:/s/\[.*/[{linear: 9}, {slice: {start: 2, end: 7}}]/' \
    head.yaml >slice.yaml
code 0 "$tandem" train slice.yaml --run-dir slice
code 0 "$tandem" export --onnx slice -o slice.onnx
code 4 "$tandem" init --onnx slice.onnx --task table --data table.csv -o none.yaml
has "$err" "gives 5 numbers, and the data need 2"

# what tandem exports comes back, and a file that it wrote goes on
code 0 "$tandem" export --onnx single -o single.onnx
code 0 "$tandem" ckpt diff single.onnx single
has "$out" "every bit"
code 0 "$tandem" init --onnx single.onnx --lang zh -o again.yaml
code 0 "$tandem" check again.yaml
code 2 "$tandem" init --onnx single.onnx -o again.yaml
has "$err" "already exists"

# one sentence for what cannot be
code 2 "$tandem" init --onnx single.onnx --data photos
has "$err" "say with \`--task images\`, table or series what --data is"
code 2 "$tandem" init --onnx single.onnx --task mnist
has "$err" "with --onnx the task is images, table or series, got \`mnist\`"
code 3 "$tandem" init --onnx "$files/no_parameters.onnx"
has "$err" "no_parameters.onnx: the network has no parameters to train"
code 8 "$tandem" init --onnx none.onnx
has "$err" "none.onnx"
head -c 3000 single.onnx >short.onnx
code 8 "$tandem" init --onnx short.onnx
has "$err" "short.onnx: at byte"
code 8 "$tandem" ckpt show short.onnx
cp "$files/plain_beside.onnx" alone.onnx
code 8 "$tandem" init --onnx alone.onnx
has "$err" "alone.onnx: numbers of it are in the file 'plain_beside.onnx.data' beside it"
cp "$files/plain_beside.onnx.data" .
code 0 "$tandem" init --onnx alone.onnx
