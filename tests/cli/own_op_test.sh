# A layer of a library (samples/own_op): refused unless the environment names its folder; then every command knows it.
. "$(dirname "$0")/support.sh"
sample=$SAMPLES/own_op/swish.yaml
folder=$TANDEM_OP_PATH
unset TANDEM_OP_PATH

code 3 "$tandem" check "$sample"
has "$out" "libswish.so is code that runs in this process"

export TANDEM_OP_PATH=/no/such/folder
code 3 "$tandem" check "$sample"
has "$out" "libswish.so is in none of the folders of TANDEM_OP_PATH, each of which begins with '/': /no/such/folder"

export TANDEM_OP_PATH=/no/such/folder:$folder
refused() { # EXPRESSION WORDS
    sed -E "$1" "$sample" >bad.yaml
    code 3 "$tandem" check bad.yaml
    has "$out" "$2"
}
refused 's/op: swish/op: swisch/' "did you mean \`swish\`?"
refused 's/libswish.so/..\/libswish.so/' "a module is the name of a file without its folder"
refused 's/beta: 1.5/beta: 0/' "swish 'act1': with beta 0 it is x / 2"
refused 's/beta: 1.5/bata: 1.5/' "unknown key 'bata' in layer swish"
refused 's/, op: swish//' "a custom layer needs the key \`op\`"
refused 's/custom: \{.*/custom: swish/' "a custom layer needs the key \`module\`"

code 0 "$tandem" show "$sample"
has "$out" "custom: {module: libswish.so, op: swish, name: act1, beta: 1.5}"
code 0 "$tandem" plan "$sample"
grep -qE "fwd +swish .* ref" "$out" || fail "plan does not have the layer's kernel"
code 0 "$tandem" explain custom
code 0 "$tandem" explain layers
grep -q "^  custom " "$out" || fail "explain layers does not list custom"

params() { sed -nE 's/.*"params_xxh3":"([0-9a-f]+)".*/\1/p' "$1/summary.json"; }
for mode in single dp ddp; do
    code 0 "$tandem" train "$sample" --quiet --steps 6 --run-dir "$mode" "parallel.mode=$mode" "parallel.device_ids=[0, 1]" \
        parallel.dp.scatter=strided
    same "$(params $mode)" "$(params single)" "$mode with a layer of its own"
done
code 0 "$tandem" train "$sample" --quiet --steps 3 --run-dir half "parallel.device_ids=[0, 1]"
code 0 "$tandem" train "$sample" --quiet --steps 6 --run-dir half "parallel.device_ids=[0, 1]"
same "$(params half)" "$(params single)" "a run that was resumed"

# One file is the model, and its layer is found again.
{ # a row of ten zeros
    printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 10), }"
    head -c 40 /dev/zero
} >x.npy
code 0 "$tandem" export single -o model.tandem
code 0 "$tandem" predict model.tandem x.npy
code 11 "$tandem" export single --onnx -o model.onnx
unset TANDEM_OP_PATH
"$tandem" predict model.tandem x.npy >"$out" 2>"$err" && fail "a model's code is loaded unasked"
has "$err" "libswish.so is code that runs in this process"
