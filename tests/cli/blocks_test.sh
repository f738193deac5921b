# A network written with blocks is the same network: that of model.builtin, to the bit.
. "$(dirname "$0")/support.sh"
sed '/^  blocks:/,/name: fc, out/d; s/^  input: .*/&\n  builtin: resnet18\n  classes: 10/' "$SAMPLES/resnet18/resnet18.yaml" >builtin.yaml
cp "$SAMPLES/resnet18/resnet18.yaml" blocks.yaml
for form in blocks builtin; do
    code 0 "$tandem" plan $form.yaml
    grep -o 'hash [0-9a-f]*' "$out" >$form.plan || fail "no hash of the plan of $form.yaml"
    code 0 "$tandem" train $form.yaml --run-dir $form --steps 1 data.train.samples=8 --quiet
done
cmp -s blocks.plan builtin.plan || fail "the plans differ: $(cat blocks.plan builtin.plan)"
same "$(json blocks/summary.json params_xxh3)" "$(json builtin/summary.json params_xxh3)" params_xxh3
# what it becomes is a file of its own
code 0 "$tandem" show blocks.yaml
cp "$out" shown.yaml
has "$out" "name: layer4.1.conv2"
hasnt "$out" '$out'
code 0 "$tandem" plan shown.yaml
has "$out" "$(cat builtin.plan)"
# a layer of a block from the command line
code 0 "$tandem" show blocks.yaml 'model.blocks.basic.layers[0].kernel=5' 'model.blocks.basic.layers[0].padding=2'
has "$out" "name: layer3.0.conv1, out: 256, kernel: [5, 5], stride: [2, 2], padding: [2, 2]"
code 0 "$tandem" explain blocks
has "$out" "as nn.Identity"
code 0 "$tandem" explain block.repeat --lang zh
has "$out" "连续使用的次数"
