# Models with several inputs: training, predictions from arrays and rows, what is printed, what is refused.
. "$(dirname "$0")/support.sh"
cp "$SAMPLES"/inputs/{parcels.yaml,*.npy} "$SAMPLES"/table/{table.yaml,deliveries.csv,new.csv} .

sed -i /schedule/d parcels.yaml # a constant rate, so that runs of any length begin alike
for mode in single dp ddp; do
    code 0 "$tandem" train parcels.yaml --mode $mode --steps 20 --run-dir $mode
    hashes="${hashes:-} $(json $mode/summary.json params_xxh3)"
done
code 0 "$tandem" train parcels.yaml --mode ddp --steps 20 --run-dir stages parallel.stages=2 'parallel.device_ids=[0, 1, 2, 3]'
hashes="$hashes $(json stages/summary.json params_xxh3)"
same "$(tr ' ' '\n' <<<"$hashes" | grep -v '^$' | sort -u | wc -l)" 1 "hashes of parameters"
code 0 "$tandem" train parcels.yaml --mode single --steps 8 --run-dir parts
code 0 "$tandem" train parcels.yaml --mode dp --steps 20 --run-dir parts
same "$(json parts/summary.json params_xxh3)" "$(json single/summary.json params_xxh3)" "parameters of a run that went on in dp"
hasnt "$err" "changed since then: model"

# ---- what is printed ----
code 0 "$tandem" show parcels.yaml
has "$out" '  inputs: {"sign": [1, 10, 10], "facts": [2], "zone": [1]}'
has "$out" "- conv2d: {name: look, input: [sign],"
cp "$out" resolved.yaml
code 0 "$tandem" check resolved.yaml
code 0 "$tandem" show parcels.yaml 'model.inputs.sign=[1, 12, 12]'
has "$out" '"sign": [1, 12, 12], "facts": [2]'
code 0 "$tandem" plan parcels.yaml --graph
has "$out" "graph  inputs v0 sign 1x10x10, v1 facts 2, v2 zone 1  layers 10"
code 0 "$tandem" plan parcels.yaml
has "$out" "fwd    slice              batch"
code 0 "$tandem" explain model.inputs
has "$out" "mapping of names to shapes, at least 1 of them, at most 32 of them, 1 to 2147483647, or null"
code 0 "$tandem" explain inputs
has "$out" "data.train.inputs"
has "$out" "data.transform.normalize.inputs"
code 0 "$tandem" data check parcels.yaml
has "$out" "inputs      sign [1, 10, 10], facts [2], zone [1]"
grep '^transform: ' "$out" | head -1 >printed
same "$(grep -c zone printed)" 0 "normalize for the numbers that the embedding looks up"
code 0 "$tandem" check parcels.yaml data.transform="$(sed 's/^transform: //' printed)"
code 0 "$tandem" train parcels.yaml --steps 20 --run-dir own data.transform="$(sed 's/^transform: //' printed)"
code 0 "$tandem" export own -o own.tandem
code 0 "$tandem" show own.tandem
has "$out" "{normalize: {mean: [6.2026, 1.6019], std: [3.6266, 1.1828], inputs: [facts]}}"

# ---- predictions ----
all="sign=sign.npy facts=facts.npy zone=zone.npy"
code 0 "$tandem" predict single $all
cp "$out" run.csv
same "$(wc -l <run.csv)" 321 "rows of predictions"
code 0 "$tandem" export single -o parcels.tandem
code 0 "$tandem" show parcels.tandem
has "$out" '  inputs: {"sign": [1, 10, 10], "facts": [2], "zone": [1]}'
code 0 "$tandem" predict parcels.tandem zone=zone.npy facts=facts.npy sign=sign.npy
cmp -s "$out" run.csv || fail "predict of the model is not that of its run"
python3 - <<'PY' || exit 77
import struct
def read(name):
    raw = open(name, "rb").read()
    return raw[10 + struct.unpack("<H", raw[8:10])[0]:]
def save(name, kind, shape, body):
    head = ("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (kind, "".join("%d, " % n for n in shape))).ljust(117) + "\n"
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + body)
sign, facts, zone = read("sign.npy"), read("facts.npy"), read("zone.npy")
rows = b"".join(struct.pack("<100f", *sign[i * 100:i * 100 + 100]) + facts[i * 8:i * 8 + 8] + struct.pack("<f", zone[i])
                for i in range(320))
save("rows.npy", "<f4", (320, 103), rows)
save("few.npy", "<f4", (3, 2), facts[:24])
PY
code 0 "$tandem" predict parcels.tandem rows.npy
cmp -s "$out" run.csv || fail "predict of rows is not that of arrays"
code 0 "$tandem" predict single $all --out a.npy
code 0 "$tandem" predict single rows.npy --out b.npy
cmp -s a.npy b.npy || fail "raw outputs of rows are not those of arrays"
code 0 "$tandem" train parcels.yaml --steps 20 --run-dir rows data.train='{format: npy, x: rows.npy, y: y.npy, holdout: 0.25}' \
    data.eval='{format: npy, x: rows.npy, y: y.npy, holdout: 0.25}'
same "$(json rows/summary.json params_xxh3)" "$(json single/summary.json params_xxh3)" "parameters of rows"
code 4 "$tandem" predict single sign=sign.npy
has "$err" "there is no file for the model's input 'facts'"
code 4 "$tandem" predict single $all weight=facts.npy
has "$err" "the model has no input 'weight'; its inputs are sign, facts, zone"
code 2 "$tandem" predict single sign=x.md facts=facts.npy zone=zone.npy
has "$err" "sign 'x.md': must be a .npy file"
code 2 "$tandem" predict single sing=x.md
has "$err" "unknown key 'sing'"
code 4 "$tandem" predict single few.npy
has "$err" "write sign=FILE facts=FILE zone=FILE"
code 2 "$tandem" predict single $all zone=facts.npy
has "$err" "two arrays for the input zone"
code 2 "$tandem" predict single rows.npy $all
has "$err" "samples are in rows.npy, and in arrays of inputs (sign=sign.npy); give one of the two"
code 4 "$tandem" predict single sign=sign.npy facts=few.npy zone=zone.npy
has "$err" "sign 'sign.npy' holds 320 samples, facts 'few.npy' holds 3; they must be equal"
code 4 "$tandem" predict single facts.npy
has "$err" "the model has 3 inputs (sign, facts, zone), and a sample must be one row of their 103 numbers, found [2]"
printf '' >a.png
code 2 "$tandem" predict single a.png
has "$err" "the model has 3 inputs (sign, facts, zone), and a picture is only one of them"
# the embedding's numbers are looked at, and not normalized
code 4 "$tandem" train parcels.yaml --run-dir no 'data.train.inputs.zone=y.npy' 'model.layers[4].embedding.vocabulary=3'
has "$err" "embedding 'where' takes whole numbers from 0 to 2"
code 3 "$tandem" train parcels.yaml --run-dir no 'data.transform=[{normalize: {mean: 1, std: 2, inputs: [sign, zone]}}]'
has "$err" "normalize would change the numbers that embedding 'where' looks up"
code 3 "$tandem" train parcels.yaml --run-dir no 'data.transform=[{mixup: 0.3}]'
has "$err" "mixup and cutmix would mix the numbers that embedding 'where' looks up"
code 3 "$tandem" check parcels.yaml 'data.transform=[{random_crop: 8}]'
has "$out" "a model with several inputs takes no steps for pictures"
code 3 "$tandem" check parcels.yaml 'data.transform=[to_float, {normalize: {mean: 0.5, std: 0.5, inputs: [sign, sign]}}]'
has "$out" "normalize: the input 'sign' is listed twice"
code 0 "$tandem" train parcels.yaml --run-dir parts --steps 30 'model.inputs={sign: [1, 10, 10], facts: 2, depot: 1}' \
    'model.layers[4].embedding.input=depot' data.train.inputs='{sign: sign.npy, facts: facts.npy, depot: zone.npy}' data.eval=null
has "$err" "changed since then: model.inputs was sign 1x10x10, facts 2, zone 1, is sign 1x10x10, facts 2, depot 1"

# ---- a table: its numbers, then its categories ----
code 0 "$tandem" train table.yaml --run-dir table
sed -e 's/  input: \[4\] .*/  inputs: {numbers: 3, kind: 1}/' -e '/- slice/d' -e 's/{name: carrier,/{name: carrier, input: kind,/' table.yaml >named.yaml
code 0 "$tandem" train named.yaml --run-dir named
same "$(json named/summary.json params_xxh3)" "$(json table/summary.json params_xxh3)" "parameters of a table with inputs"
code 0 "$tandem" predict table new.csv -o table.csv
code 0 "$tandem" predict named new.csv -o named.csv
cmp -s table.csv named.csv || fail "predictions of a table with inputs differ"
code 4 "$tandem" train named.yaml --run-dir no 'model.inputs={numbers: 4, kind: 1}'
has "$err" "the model has 2 inputs (numbers, kind), and a sample must be one row of their 5 numbers, found [4]"
