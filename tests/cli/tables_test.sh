# Tables: categories, gaps and units from the file to the prediction.
. "$(dirname "$0")/support.sh"

python3 - <<'PY'
import random
random.seed(1)
price = {"Bern": 9000, "Oslo": 7000, "Rome": 5000, "Paris": 11000}
with open("homes.csv", "w") as f:
    f.write("id,city,size,rooms,price\n")
    for i in range(200):
        city, size = random.choice(sorted(price)), random.uniform(30, 200)
        f.write(f'{i},{city},{size:.1f},{"" if i % 9 == 4 else round(size / 30)},{price[city] * size:.0f}\n')
PY
cat >homes.yaml <<'YAML'
tandem: 1
name: homes
model:
  input: [3]
  layers:
    - slice: {start: 2}
    - embedding: {name: city, vocabulary: 5, dim: 8, padding_idx: 0}
    - flatten: {id: city}
    - slice: {start: 0, end: 2, input: input}
    - linear: {name: numbers, out: 8, id: numbers}
    - add: {input: [numbers, city]}
    - relu
    - linear: 1
data:
  train: {format: csv, path: homes.csv, ignore: [id], categories: [city], missing: mean, unseen: unknown, standardize: true, standardize_target: true, holdout: 0.2}
  eval: {format: csv, path: homes.csv, holdout: 0.2}
loss: mse
optimizer: {type: adam, lr: 1.0e-2}
train: {epochs: 20, batch: {global: 32}}
parallel: {device_ids: [0, 1], dp: {scatter: strided}}
YAML
code 0 "$tandem" data check homes.yaml
has "$out" "numbers     0 to 1: size (mean"
has "$out" "category    2: city, vocabulary 5: any other, Bern, Oslo, Paris, Rome"
has "$out" "target      price (mean"
for mode in single dp ddp; do
    code 0 "$tandem" train homes.yaml --mode $mode --run-dir $mode
    hashes="${hashes:-} $(grep -o '"params_xxh3": *"[0-9a-f]*"' $mode/summary.json)"
done
same "$(tr ' ' '\n' <<<"$hashes" | grep -v '^$' | sort -u | grep -c xxh3)" 1 "different hashes of parameters"

# what was learned is in the checkpoint: other columns, in another order, without a label; an unknown city
printf '\xef\xbb\xbfrooms;"city";size;note\r\n3;"Bern";100;a\r\n;Atlantis;50;"b;""c"""\r\n' >new.csv
code 0 "$tandem" predict single new.csv
same "$(head -1 "$out")" "index,price" "head of predictions"
same "$(awk -F, 'NR == 2 { print ($2 > 700000 && $2 < 1100000) }' "$out")" 1 "a price in the unit of the file"
same "$(wc -l <"$out")" 3 "rows of predictions"
has "$err" "tandem: warning: column 'city' has categories that the data trained on does not have, in 1 row; the first is 'Atlantis', index 1; they count as unknown"
same "$(wc -l <"$err")" 1 "lines about unknown categories"
code 0 "$tandem" predict single new.csv -o new.jsonl
code 0 "$tandem" export single -o homes.tandem
code 0 "$tandem" predict homes.tandem new.csv -o model.jsonl
cmp -s new.jsonl model.jsonl || fail "predict of a model is not that of its run"
has new.jsonl '{"index":0,"price":'
same "$(grep -o '"unseen":.*' new.jsonl)" '"unseen":{"city":"Atlantis"}}' "unknown categories of rows"
printf 'rooms,city,size\n3,Bern,100\n,Xanadu,1\n,,1\n3,Atlantis,1\n3,Xanadu,1\n' >five.csv
code 0 "$tandem" predict single five.csv
has "$err" "in 3 rows; the first is 'Xanadu', index 1;"
# eval, predict of a split and data check tell of them, too; training knows all of its own
{
    echo "id,city,size,rooms,price"
    for city in Bern Atlantis Rome Xanadu Xanadu ""; do echo "1,$city,100,3,900000"; done
} >later.csv
later=(data.eval.path=later.csv data.eval.holdout=0 data.train.holdout=0)
code 0 "$tandem" eval single "${later[@]}" --out later.json
has "$err" "column 'city' has categories that the data trained on does not have, in 3 rows; the first is 'Atlantis', index 1; they count as unknown"
same "$(wc -l <"$err")" 1 "lines of eval"
same "$(json later.json unseen)" 3 "unknown categories"
code 0 "$tandem" predict single "${later[@]}"
has "$err" "in 3 rows; the first is 'Atlantis', index 1;"
code 0 "$tandem" data check homes.yaml "${later[@]}"
has "$out" "unseen      city: 3 rows with categories that data.train does not have; the first is 'Atlantis', sample 1"
same "$(grep -c unseen "$out")" 1 "lines of data check"
code 4 "$tandem" data check homes.yaml "${later[@]}" data.train.unseen=error data.train.missing=mean
has "$err" "Atlantis"
for mode in single ddp; do # training, once at its start
    code 0 "$tandem" train homes.yaml --mode $mode --run-dir later-$mode "${later[@]}" eval.every='1 step' --steps 2
    has "$err" "data.eval has categories that data.train does not have, in 3 of 6 rows; the first is 'Atlantis' in column 'city', sample 1; evaluations count them as unknown"
    same "$(grep -c 'categories that data.train' "$err")" 1 "lines of train in $mode"
done
code 0 "$tandem" train homes.yaml --run-dir later-none --steps 2
hasnt "$err" "categories that"
code 0 "$tandem" eval single --out same.json
same "$(wc -c <"$err")" 0 "words of eval about the categories of the data trained on"
same "$(json same.json unseen)" "" "unknown categories"
code 0 "$tandem" data check homes.yaml
hasnt "$out" "unseen"
printf 'rooms,city,size\n3,Bern,100\n3,,50\n' >known.csv
code 0 "$tandem" predict single known.csv
same "$(wc -c <"$err")" 0 "words about a table without unknown categories"
code 2 "$tandem" predict single new.csv homes.csv
has "$err" "one table at a time"
printf 'rooms,city\n3,Bern\n' >few.csv
code 4 "$tandem" predict single few.csv
has "$err" "there is no column 'size', which the data trained on has"
code 4 "$tandem" train homes.yaml --run-dir bad data.train.unseen=error data.train.missing=error
has "$err" "to fill gaps write \`missing: mean\` or \`missing: zero\`"
code 4 "$tandem" train homes.yaml --run-dir bad model.layers[1].vocabulary=4
has "$err" "column 'city' has 5 categories with that for unknown ones, and embedding 'city' has a vocabulary of 4; write vocabulary: 5"
code 3 "$tandem" check homes.yaml data.eval.missing=zero
has "$out" "data.eval.missing must be that of data.train, or be left out"
sed 's/Oslo/Lima/' homes.csv >other.csv
code 8 "$tandem" train homes.yaml --run-dir single data.train.path=other.csv train.epochs=30
has "$err" "was trained on the columns of a table"

# A configuration from a look at the table.
code 0 "$tandem" init --task table --data homes.csv -o looked.yaml
has looked.yaml 'categories: ["city"]'
has looked.yaml 'ignore: ["id"]'
has looked.yaml '# "id": each row has 1 more than the row before'
{ echo age,size,mark,price && for i in $(seq 30); do echo "$i,$((i * i)),m$i,$((3 * i))"; done; } >ages.csv
sed 's/^7,49,/7,"$1,234",/' ages.csv >slip.csv
code 0 "$tandem" init --task table --data slip.csv -o slip.yaml
has slip.yaml '# "size": no number in line 8'
has slip.yaml '# "mark": in 30 rows 30 different words'
cut -d, -f1,4 ages.csv >age.csv # a column that counts rows is better than none
code 0 "$tandem" init --task table --data age.csv -o age.yaml
code 0 "$tandem" check age.yaml
hasnt age.yaml ignore
cut -d, -f3,4 ages.csv >marks.csv
code 4 "$tandem" init --task table --data marks.csv
has "$err" 'no column of numbers or of kinds; "mark": in 30 rows 30 different words'
# What keeps a column from being read as it was meant is told by init itself, in a sentence.
strange() { # NAME WORDS: init's only line about the table
    code 4 "$tandem" init --task table --data "$1.csv" -o "$1.yaml"
    has "$err" "$2"
    same "$(wc -l <"$err")" 1 "lines of init about $1"
    [ -e "$1.yaml" ] && fail "init wrote a file for $1"
}
sed 's/mark/size/' ages.csv >twice.csv
strange twice "columns 1 and 2, counted from 0, are both named 'size'; rename one in line 1"
sed '1s/size\|mark//g' ages.csv >nameless.csv
strange nameless "columns 1 and 2, counted from 0, have no name; write one for each in line 1"
sed '1s/size//' ages.csv >unnamed.csv
strange unnamed "column 2 of the first row: the column has no name; write one"
sed '1s/age//' ages.csv >index.csv # as pandas writes its index
code 0 "$tandem" init --task table --data index.csv -o index.yaml
has index.yaml 'ignore: ["0", "mark"]'
code 0 "$tandem" data check index.yaml
sed 's/^7,49,/7,-Inf,/' ages.csv >infinite.csv
strange infinite "line 8, column 'size': '-Inf' is not a finite number; write a number, or leave the cell empty"
sed '1!s/,[0-9]*$/,inf/' ages.csv >endless.csv
strange endless "line 2, column 'price': 'inf' is not a finite number"
sed '1!s/,\([0-9]*\),m/,"\1,5",m/' ages.csv >commas.csv
strange commas "line 2, column 'size': '1,5' has a decimal comma; write numbers with a point, and without separators of thousands"
sed '1!s/$/,5/; s/,\([0-9]*\),\(m[^,]*\),/;\1;\2;/; 1s/,/;/g' ages.csv >german.csv
strange german "line 2, column 'price': '3,5' has a decimal comma"
sed 's/,m[0-9]*,/,K\xf6ln,/' ages.csv >latin1.csv
strange latin1 "line 2, column 'mark': the text is not UTF-8; convert the file, as with \`iconv -f latin1 -t utf-8\`"
awk -F, -v OFS=, 'NR > 1 { $3 = NR == 6 ? "\"north \"" : NR % 2 ? "south" : "north" } 1' ages.csv >blanks.csv
strange blanks "line 6, column 'mark': 'north ' is the text of an earlier line, but for blanks; write them in one way"
cut -d, -f1,2,4,3 ages.csv | awk -F, -v OFS=, 'NR > 1 { $4 = NR == 9 ? "\" yes\"" : NR % 2 ? "yes" : "no" } { print $1, $2, $4 }' >label.csv
strange label "line 9, column 'price': ' yes' is the text of an earlier line, but for blanks"
sed '1s/mark/gr\xf6sse/' ages.csv >latin1-name.csv
strange latin1-name "line 1, column 3: the name of the column is not UTF-8"
sed '7s/,[0-9]*$/,about 20/' ages.csv >about.csv
strange about "line 7: the target, column 'price', has no number here; correct it, or name another column with --target"
sed '1!s/,[0-9]*$/,5/' ages.csv >constant.csv
strange constant "the target, column 'price', is the same in all 30 rows; name another column with --target"
sed '1!s/,[0-9]*$/,yes/' ages.csv >yes.csv
strange yes "the target, column 'price', is the same in all 30 rows"
tr , '|' <ages.csv >bars.csv
strange bars "one column only; a table needs numbers and a label, separated by commas, semicolons or tabs"
# Gaps by other names, and semicolons, are read as they are.
sed '7s/,[0-9]*,m/,nan,m/' ages.csv >nan.csv
code 0 "$tandem" init --task table --data nan.csv -o nan.yaml
has nan.yaml "missing: mean"
tr , ';' <nan.csv >semicolons.csv
code 0 "$tandem" init --task table --data semicolons.csv -o semicolons.yaml
same "$(sed 's/semicolons/nan/' semicolons.yaml)" "$(cat nan.yaml)" "files for commas and for semicolons"
code 0 "$tandem" train semicolons.yaml --steps 2 --quiet --run-dir semicolons
# Among words those for a gap are categories, too.
awk -F, -v OFS=, 'NR > 1 { $3 = NR % 5 == 1 ? "" : NR % 5 == 2 ? "NA" : NR % 5 == 3 ? "None" : "m" NR % 2 } 1' ages.csv >words.csv
code 0 "$tandem" init --task table --data words.csv -o words.yaml
has words.yaml "vocabulary: 5" # NA, None, m0, m1, and what is unknown
code 0 "$tandem" train words.yaml --steps 2 --quiet --run-dir words
code 0 "$tandem" check looked.yaml
code 0 "$tandem" train looked.yaml --run-dir looked train.epochs=30
same "$(grep -o '"eval_loss": *[0-9.e-]*' looked/summary.json | awk -F: '{ print ($2 < 0.2) }')" 1 "the price is learned"
code 0 "$tandem" init --task table --data homes.csv --target city --lang zh -o city.yaml
has city.yaml "loss: cross_entropy"
code 0 "$tandem" check city.yaml
code 2 "$tandem" init --task table
has "$err" "needs \`--data FILE.csv\`"
code 4 "$tandem" init --task table --data homes.csv --target colour
has "$err" "colour"
# of four rows a fifth is none, so what init wrote could not be trained
printf 'size,price\n30,100\n40,200\n50,300\n60,400\n' >rows.csv
code 4 "$tandem" init --task table --data rows.csv -o none.yaml
has "$err" "4 rows; to train and to test there must be at least 5"
[ -e none.yaml ] && fail "none.yaml was made"
printf '70,500\n' >>rows.csv
code 0 "$tandem" init --task table --data rows.csv -o rows.yaml
code 0 "$tandem" train rows.yaml --quiet --run-dir rows train.epochs=1
printf 'size,price\n30,100\n40,\n50,2\n60,3\n70,4\n' >gap.csv
code 4 "$tandem" init --task table --data gap.csv
has "$err" "no label in 1 row;"

# The sample's losses are PyTorch's (make_table_curve.py), where every batch has all rows.
code 0 "$tandem" train "$SAMPLES/table/table.yaml" --mode single --quiet --run-dir curve parallel.device_ids=[0] \
    data.train.holdout=0 data.eval.holdout=0 eval.every=never train.epochs=null train.steps=20 train.batch.global=240 log.every='1 step'
python3 - "$(dirname "$0")/table_curve.txt" <<'PY' || fail "another curve than PyTorch's"
import json, sys
want = [float(line) for line in open(sys.argv[1])]
got = [json.loads(line)["loss"] for line in open("curve/metrics.jsonl") if '"kind":"train"' in line]
assert len(got) == len(want) == 20
assert all(abs(a / b - 1) < 2e-6 for a, b in zip(got, want)), got
PY
