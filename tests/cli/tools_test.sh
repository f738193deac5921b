# doctor, data, bench: they run, and what they print can be read.
. "$(dirname "$0")/support.sh"
toy

code 0 "$tandem" doctor
has "$out" "modules"
cp "$out" text
code 0 "$tandem" doctor --json
for name in $(sed -n 's/^set(TDM_MODULES \(.*\))$/\1/p' "$here/../../CMakeLists.txt"); do # each with its own reason, in both forms
    has text "  $(printf '%-18s' $name) $(json "$out" $name)"
done
has "$out" '"modules":{'
code 0 "$tandem" data make digits --format idx --samples 60 --seed 3
code 10 "$tandem" data make digits --format idx --samples 60 --seed 3
code 0 "$tandem" data make npy --format npy --samples 20
code 0 "$tandem" data check toy.yaml
has "$out" "data.train"
has "$out" "data.eval"
cat >digits.yaml <<'YAML'
tandem: 1
name: digits
model:
  input: [1, 28, 28]
  layers: [flatten, {linear: 10}]
data:
  train: {format: idx, images: digits/images-idx3-ubyte, labels: digits/labels-idx1-ubyte}
  transform: [to_float]
loss: cross_entropy
optimizer: {type: sgd, lr: 0.1}
train: {epochs: 2, batch: {per_device: 10}}
parallel: {mode: single, device_ids: [0]}
YAML
code 0 "$tandem" data check digits.yaml
has "$out" "60"
digits="format: idx, images: digits/images-idx3-ubyte, labels: digits/labels-idx1-ubyte"
code 4 "$tandem" data check digits.yaml "data.train={$digits, range: [0, 900]}"
has "$err" "error: command line: data.train: data range [0, 900) reaches beyond the 60 samples"
code 4 "$tandem" data check digits.yaml model.layers='[flatten, {linear: 9}]'
has "$err" "must be 0 to 8 (the model has 9 outputs), found 9"
code 0 "$tandem" train digits.yaml --run-dir d --quiet
truncate -s 1000 digits/images-idx3-ubyte
code 4 "$tandem" data check digits.yaml
has "$err" "images-idx3-ubyte"

for mode in single dp ddp; do
    code 0 "$tandem" bench step toy.yaml --mode $mode --iterations 4 --warmup 1
    has "$out" "samples/s"
done
code 0 "$tandem" bench step toy.yaml --mode ddp --iterations 4 --json
has "$out" '"ms_per_step"'
has "$out" '"kernel":'
code 0 "$tandem" bench op linear out=8 --input 16 --batch 4 --iterations 2 --json
has "$out" '"forward_ms"'
code 0 "$tandem" bench op conv2d out=4 kernel=3 --input 3x8x8 --batch 2 --iterations 2 --kernels ref
has "$out" "kernel ref, 2 calls one after another on the same tensors: forward "
code 0 "$tandem" bench op flatten --input 3x8x8
has "$out" "no call of its own"
code 0 "$tandem" bench op concat --input 4x8x8 --batch 2 --iterations 2
code 0 "$tandem" bench op embedding vocabulary=7 dim=3 --input 16 --batch 4 --iterations 2 --json
has "$out" '"op":"embedding"'
code 0 "$tandem" bench op linear out=8 --input 16 --batch 4 --iterations 2 --processor
code 2 "$tandem" bench op linear out=8 --input 16 --threads 2 --processor
has "$err" "--processor"
code 3 "$tandem" bench op conv --input 3x8x8
code 2 "$tandem" bench op relu --input 3x8x8x8
for backend in shm local; do
    code 0 "$tandem" bench all_reduce --ranks 3 --backend $backend --min 8 --max 4K --iterations 3
    has "$out" "busbw"
done
for collective in reduce broadcast all_gather gather scatter reduce_scatter all_to_all; do # each checks its results
    code 0 "$tandem" bench $collective --ranks 3 --min 4 --max 64K --iterations 2 --warmup 0
    has "$out" "# $collective, 3 ranks, backend shm"
done
code 0 "$tandem" bench reduce_scatter --ranks 2 --backend local --plain --max 1K --json
has "$out" '"collective":"reduce_scatter"'
has "$out" '"wrong":0'
code 2 "$tandem" bench all_together
has "$err" "expected step, op, all_reduce, reduce,"
code 2 "$tandem" bench gather job.yaml
code 0 "$tandem" bench all_reduce --plain --max 1K --json
has "$out" '"wrong":0'
code 0 "$tandem" bench data toy.yaml --iterations 5
has "$out" "samples/s"
