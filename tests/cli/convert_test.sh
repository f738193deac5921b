# ckpt convert: PyTorch's files become safetensors and back, to the bit; nothing in them is run.
# tests/ckpt/make_torch.py made the files.
. "$(dirname "$0")/support.sh"
torch=$here/../ckpt/torch

for name in kinds nested protocol4; do
    code 0 "$tandem" ckpt convert "$torch/$name.pt" $name.safetensors
    code 0 "$tandem" ckpt diff $name.safetensors "$torch/$name.safetensors"
    has "$out" "every bit"
done
# the same tensors in archives with the records for files above 4 GiB, and compressed
for name in wide deflated plain; do
    code 0 "$tandem" ckpt convert "$torch/$name.pt" $name.safetensors
    code 0 "$tandem" ckpt diff $name.safetensors kinds.safetensors
    has "$out" "every bit"
done
cp "$torch/far.head" far.pt
dd if="$torch/far.tail" of=far.pt oflag=seek_bytes seek=4294967296 conv=notrunc 2>dd.log
code 0 "$tandem" ckpt convert far.pt far.safetensors
rm far.pt # a hole is cheap only where files have holes
code 0 "$tandem" ckpt diff far.safetensors "$torch/far.safetensors"
mkdir lacking
: >lacking/libz.so.1
code 8 env LD_LIBRARY_PATH="$PWD/lacking" "$tandem" ckpt convert "$torch/deflated.pt" none.safetensors
has "$err" "deflated.pt: its entry 'byteorder' is compressed and needs zlib (libz.so.1), which is not installed; install zlib1g"
code 0 env LD_LIBRARY_PATH="$PWD/lacking" "$tandem" ckpt convert "$torch/wide.pt" stored.safetensors

code 0 "$tandem" ckpt convert "$torch/extra.pt" extra.safetensors
has "$out" "7 tensors; 1 entry that is no tensor left out"
code 8 "$tandem" ckpt convert "$torch/parts.pt" parts.safetensors
has "$err" "say which with \`tandem ckpt convert --key\`: 'ema', 'net'"
code 0 "$tandem" ckpt convert "$torch/parts.pt" parts.safetensors --key net
code 0 "$tandem" ckpt diff parts.safetensors nested.safetensors
code 8 "$tandem" ckpt convert "$torch/parts.pt" none.safetensors --key model
has "$err" "it has no dictionary 'model'"

# back again: the very file that torch.load was seen to take
code 0 "$tandem" ckpt convert "$torch/kinds.safetensors" written.pt
cmp written.pt "$torch/written.pt" || fail "written.pt has other bytes"
code 0 "$tandem" ckpt convert written.pt again.safetensors
code 0 "$tandem" ckpt diff again.safetensors kinds.safetensors

# a file with so many tensors that sorting them takes memory
{
    echo "tandem: 1"
    echo "model: {input: [4], layers: [$(printf '{linear: 4}, %.0s' $(seq 99)){linear: 4}]}"
    echo "data: {train: {format: synthetic, samples: 4}}"
    echo "train: {steps: 1, batch: {per_device: 4}}"
} >many.yaml
code 0 "$tandem" train many.yaml --quiet --run-dir many
code 0 "$tandem" ckpt convert many many.pt
code 0 "$tandem" ckpt convert many.pt many.safetensors
code 0 "$tandem" ckpt diff many many.safetensors

# what is refused: status 8, one sentence, no file
refused() { # NAME SENTENCE
    code 8 "$tandem" ckpt convert "$torch/$1.pt" "$1.safetensors"
    has "$err" "$1.pt: $2"
    same "$(wc -l <"$err")" 1 "lines about $1.pt"
    [ -e "$1.safetensors" ] && fail "$1.safetensors was made"
}
refused system "its pickle names posix.system, which is no tensor; nothing of it was run"
hasnt "$err" "whole model"
[ -e run_by_a_pickle ] && fail "the pickle was run"
refused module "its pickle names torch.nn.modules.container.Sequential, which is no tensor; nothing of it was run; it is a whole model: save model.state_dict()"
refused inst "its pickle has the instruction 0x53, which no file of tensors needs; nothing of it was run"
refused build "its pickle builds an object that is no dictionary; nothing of it was run"
refused legacy "it has the format of before PyTorch 1.6; load and save it in a newer PyTorch"
refused bzip2 "its entries are compressed, but not by deflate; load and save it in PyTorch"
refused beyond "the tensor 'a' reaches beyond its storage"
refused short "the tensor 'a' reaches beyond its storage"
refused swollen "its tensors take more than 16 times the bytes of the file"
refused absent "it lacks the numbers of the tensor 'a'"
refused loop "it has no dictionary 'state_dict' or 'model' of tensors"
refused cut "its pickle ends within an instruction"
refused damaged "the storage of the tensor '0.weight' is damaged"
refused expands "the compressed numbers of the tensor 'a' give 1048576 bytes where 16 are needed"
refused bomb "its tensors take more than 16 times the bytes of the file"
refused more "the storage of the tensor 'a' expands to more than its archive says"
refused torn "the storage of the tensor 'a' is damaged"
refused announced "an entry of the archive says that it holds more than its bytes can"
refused unlocated "the archive's directory is damaged"
refused truncated "it ends before the archive does: it was cut, or is no zip archive"

code 8 "$tandem" ckpt convert nowhere.pt x.safetensors
has "$err" "nowhere.pt: there is no such file"
code 8 "$tandem" ckpt convert . x.safetensors
has "$err" ".: expected a regular file, found a folder"
code 2 "$tandem" ckpt convert kinds.safetensors x.onnx
has "$err" "x.onnx: a converted file ends in .safetensors, .pt or .pth"
code 2 "$tandem" ckpt convert kinds.safetensors
before=$(cksum <kinds.safetensors)
code 10 "$tandem" ckpt convert "$torch/nested.pt" kinds.safetensors
same "$(cksum <kinds.safetensors)" "$before" "kinds.safetensors"

# numbers that are not finite: no file of weights, and no advice about training
toy
code 0 "$tandem" train toy.yaml --run-dir spoilt --steps 1
cp spoilt/checkpoints/step-00000001/model.safetensors spoilt.safetensors
printf '\000\000\200\177' | dd of=spoilt.safetensors bs=1 seek=$(($(stat -c %s spoilt.safetensors) - 4)) conv=notrunc 2>dd.log
for pair in "spoilt.safetensors spoilt.pt" "$torch/infinite.pt infinite.safetensors"; do
    from=${pair% *} to=${pair#* }
    code 9 "$tandem" ckpt convert "$from" "$to"
    has "$err" "error: $from: tensor '"
    has "$err" "is infinite or NaN); take a file from before training failed"
    hasnt "$err" "optimizer.lr"
    [ -e "$to" ] && fail "$to was made"
done

# a run's checkpoint, and the weights that it gives
toy
code 0 "$tandem" train toy.yaml --run-dir run --steps 2
code 0 "$tandem" ckpt convert run run.pt
code 0 "$tandem" ckpt convert run.pt run.safetensors
code 0 "$tandem" eval toy.yaml --weights run.safetensors
