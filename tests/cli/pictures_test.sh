# Folders of pictures: looking at them, training in every mode, continuing, predicting; pictures that are bad.
. "$(dirname "$0")/support.sh"
[ -e "$TANDEM_MODULE_PATH/libtandem-image.so" ] || { echo "no module image: skipped"; exit 77; }

code 0 "$tandem" data make digits --format image_folder --samples 240 --seed 3
same "$(ls digits | tr '\n' ' ')" "eight five four nine one seven six three two zero " classes
cat >job.yaml <<YAML
tandem: 1
name: digits
model: {input: [3, 24, 24], layers: [{conv2d: {out: 6, kernel: 3}}, batchnorm2d, relu, {maxpool2d: 2}, flatten, {linear: 10}]}
data:
  train: {format: image_folder, path: digits, holdout: 0.25}
  eval: {format: image_folder, path: digits, holdout: 0.25}
  transform: [{random_resized_crop: {size: 24, scale: [0.7, 1]}}, {random_rotation: 10}, {color_jitter: {brightness: 0.3, hue: 0.1}}, rand_augment, random_erasing, to_float, {normalize: {mean: [0.5], std: [0.5]}}]
optimizer: {type: adam, lr: 2.0e-3}
train: {epochs: 3, batch: {global: 24}}
parallel: {device: cpu, device_ids: [0, 1], threads_per_device: 1, dp: {scatter: strided}}
YAML
code 0 "$tandem" check job.yaml
code 0 "$tandem" data check job.yaml --sheet sheet.png
has "$out" "32 x 32 to 32 x 32 pixels in the files"
has "$out" "classes     eight:"
has "$out" "samples     60"
hasnt "$out" "no samples"
hasnt "$out" "unreadable"
same "$(head -c 4 sheet.png | tail -c 3)" PNG sheet
code 10 "$tandem" data check job.yaml --sheet sheet.png
has "$err" "sheet.png: File exists"

# The same bits in every mode, with any number of loader threads, and after a restart.
run() { # NAME ARGUMENT...
    code 0 "$tandem" train job.yaml --quiet --run-dir "$@"
}
run single --mode single data.workers=0
run dp --mode dp data.workers=1
run ddp --mode ddp data.workers=3
run again --mode ddp --steps 11 train.epochs=null
run again --mode dp
hash=$(json single/summary.json params_xxh3)
for name in dp ddp again; do same "$(json $name/summary.json params_xxh3)" "$hash" "params_xxh3 of $name"; done
same "$(grep -c accuracy ddp/metrics.jsonl)" "$(grep -c accuracy single/metrics.jsonl)" lines

has single/evaluation.json '"class_names":["eight","five"'
same "$(grep -oE '"file":"[a-z]+/[^"]*png"' single/evaluation.json | sort -u | wc -l)" 32 "files of the worst samples"
cmp -s single/evaluation.json ddp/evaluation.json || fail "evaluation.json differs between single and ddp"
[ -f "digits/$(grep -oE '"file":"[^"]*' single/evaluation.json | head -1 | cut -d'"' -f4)" ] || fail "no such file"

# Predictions need the run alone: no data, and other names of files.
mkdir new && cp digits/four/* new/ && mv digits away
code 4 "$tandem" eval ddp # the message is about the key that names the folder, not about one that says null
grep -A 1 "image_folder '.*digits' cannot be opened" "$err" | grep -q "path: .*digits" || fail "$(cat "$err")"
code 0 "$tandem" predict ddp new/ "away/two" -o rows.csv
# one file that is the model: the same rows, without the run
code 0 "$tandem" export ddp -o digits.tandem
cp digits.tandem "$work/away-from-all.tandem"
code 0 "$tandem" predict "$work/away-from-all.tandem" new "away/two" -o model.csv
cmp -s rows.csv model.csv || fail "predict of a model is not that of its run"
same "$(head -1 rows.csv)" "file,class,probability,eight,five,four,nine,one,seven,six,three,two,zero" header
same "$(wc -l <rows.csv)" $((1 + $(ls new away/two | grep -c png))) rows
code 0 "$tandem" predict ddp away/zero/*.png --out rows.jsonl
has rows.jsonl '"class":"'
has rows.jsonl '"probabilities":{"eight":'
code 4 "$tandem" predict ddp job.yaml
has "$err" "picture 'job.yaml': neither a JPEG nor a PNG"
code 4 "$tandem" predict ddp nowhere.png
code 4 "$tandem" predict ddp "$(printf 'x%.0s' {1..300}).png"
has "$err" "File name too long"
# a folder with anything in it: all its pictures, sorted by folder, and nothing else
mkdir -p mixed/ten/deep mixed/TEN mixed/none && cp away/one/*0.png mixed/ && cp away/two/*0.png mixed/ten/deep/ && cp away/six/*0.png mixed/TEN/ && echo x >mixed/notes.txt
code 0 "$tandem" predict ddp mixed -o mixed.csv
same "$(tail -n +2 mixed.csv | cut -d, -f1)" "$(ls mixed/*.png mixed/TEN/*.png mixed/ten/deep/*.png | LC_ALL=C sort | awk -F/ '{ print NF == 2 ? 0 : 1, $0 }' | sort -s -k1,1 | cut -d' ' -f2)" "pictures of mixed"
mkdir nothing && code 4 "$tandem" predict ddp nothing mixed -o rest.csv
has "$err" "'nothing' holds no pictures (.jpg, .jpeg or .png)"
cmp -s mixed.csv rest.csv || fail "the folder behind one that holds no pictures was not predicted"
# links: as in training, only those that stay in the folder
ln -s ten/deep/"$(ls mixed/ten/deep | head -1)" mixed/zz.png
code 0 "$tandem" predict ddp mixed -o linked.csv
same "$(wc -l <linked.csv)" $((1 + $(wc -l <mixed.csv))) "rows with a link that stays"
ln -s "$PWD/$(ls away/one/*.png | head -1)" mixed/ten/out.png && ln -s ../nowhere.png mixed/up.png
code 4 "$tandem" predict ddp mixed/ -o refused.csv
has "$err" "picture 'mixed/up.png': a link that leads out of the folder, as are 1 more"
cmp -s linked.csv refused.csv || fail "the pictures beside links that lead out were not predicted"
code 0 "$tandem" predict ddp mixed/ten/out.png # named by the user
mv away digits
code 0 "$tandem" predict ddp -o samples.csv
same "$(cut -d, -f2 samples.csv | sort -u | grep -c '^[a-z]*$')" 11 "names in samples.csv"

# Bad pictures, folders and continuations.
head -c 200 "$(ls digits/four/*.png | head -1)" >digits/four/cut.png
code 4 "$tandem" data check job.yaml
has "$err" "1 of "
has "$err" "digits/four/cut.png': a PNG that is cut off"
has "$out" "unreadable  1 more"
code 0 "$tandem" data check job.yaml data.train.on_bad_sample=skip data.eval.on_bad_sample=skip
has "$out" "unreadable  1 more, which training leaves out"
same $(($(sed -n 's/^samples *//p' "$out" | paste -sd+))) 240 "samples that can be read"
same $(($(sed -n 's/^classes *//p' "$out" | grep -oE '[0-9]+' | paste -sd+))) 240 "samples by class"
code 4 "$tandem" train job.yaml --quiet --run-dir bad
has "$err" "digits/four/cut.png': a PNG that is cut off; repair or remove it, or write on_bad_sample: skip"
code 0 "$tandem" train job.yaml --run-dir skipped data.train.on_bad_sample=skip data.eval.on_bad_sample=skip
has "$err" "it is left out (on_bad_sample: skip)"
same "$(grep -c 'four/cut.png.: a PNG that is cut off' skipped/summary.json)" 1 "bad samples in summary.json"
has skipped/report.html "a PNG that is cut off"
for i in 1 2 3 4 5; do cp digits/four/cut.png "digits/four/cut$i.png"; done # those of both ranks are listed
code 0 "$tandem" train job.yaml --quiet --mode ddp --run-dir ranks data.train.on_bad_sample=skip data.eval.on_bad_sample=skip
same "$(grep -oE 'four/cut[1-5]*.png' ranks/summary.json | sort -u | wc -l)" 6 "bad samples of both ranks"
# The burn-in has neither batches nor counts of them.
code 0 "$tandem" burnin job.yaml --iterations 2 parallel.device_ids=[0] data.eval=null data.train.holdout=0 data.train.on_bad_sample=skip
has "$err" "1 device, 240 samples in batches of"
same "$(grep -c 'cut.png.*it is left out' "$err")" 1 "warnings of a picture"
for class in a b; do mkdir -p allbad/$class && cp digits/four/cut.png allbad/$class/; done
allbad=(data.eval=null 'data.train={format: image_folder, path: allbad, on_bad_sample: skip}')
code 4 "$tandem" burnin job.yaml --iterations 2 parallel.device_ids=[0] "${allbad[@]}"
has "$err" "burn-in: none of the 2 pictures that it takes can be read"
same "$(grep -c 'it is left out' "$err")" 2 "warnings of two pictures"
code 4 "$tandem" train job.yaml --quiet --run-dir bad data.eval=null 'data.train={format: image_folder, path: allbad}'
has "$err" "a PNG that is cut off; repair or remove it, or write on_bad_sample: skip" # the first picture, too
rm -r allbad digits/four/cut*.png
# What is in the folder and is no sample.
echo x >digits/one/notes.txt && mkfifo digits/one/pipe.png && cp "$(ls digits/one/*0.png | head -1)" digits/beside.png
code 0 "$tandem" data check job.yaml
same "$(grep -cE "digits: '(notes.txt|pipe.png)' and 1 more are left out: only regular .jpg, .jpeg and .png files are read" "$err")" 2 "warnings of other files"
has "$err" "digits: 'beside.png' is left out: only pictures in the folder of a class are read"
for verb in "train job.yaml --run-dir told" "burnin job.yaml --iterations 2 parallel.device_ids=[0]"; do # both parts of it
    code 0 "$tandem" $verb data.train.on_bad_sample=skip data.eval.on_bad_sample=skip
    same "$(grep -c "only regular .jpg, .jpeg and .png files are read" "$err")" 1 "warnings of other files"
done
rm digits/one/notes.txt digits/one/pipe.png digits/beside.png
# A picture that can be read, but not be resized.
cp "$here/../image/files/tall.png" digits/four/
short='data.transform=[{resize: 24}, {center_crop: 24}, to_float]'
too_long="digits/four/tall.png': a picture of 1 x 50000 pixels is too long to be resized to a short side of 24"
code 4 "$tandem" data check job.yaml "$short"
has "$err" "$too_long"
code 4 "$tandem" train job.yaml --quiet --run-dir bad "$short"
has "$err" "$too_long"
code 0 "$tandem" train job.yaml --run-dir tall "$short" data.train.on_bad_sample=skip data.eval.on_bad_sample=skip
has "$err" "$too_long; it is left out (on_bad_sample: skip)"
code 4 "$tandem" predict tall digits/four/tall.png
has "$err" "$too_long"
rm digits/four/tall.png
ln -s /etc/hostname digits/four/out.png
code 4 "$tandem" train job.yaml --quiet --run-dir bad --steps 8 train.epochs=null
has "$err" "four/out.png': a link that leads out of the folder"
rm digits/four/out.png
mkdir digits/empty
code 4 "$tandem" train job.yaml --quiet --run-dir bad
has "$err" "the class 'empty' has no pictures"
mv digits/four digits/empty/
code 8 "$tandem" train job.yaml --quiet --run-dir single train.epochs=4
has "$err" "an output would change its meaning"
mv digits/empty/four digits/ && rmdir digits/empty
code 4 "$tandem" train job.yaml --quiet --run-dir bad data.transform='[to_float]'
has "$err" "add resize and center_crop"
mkdir only && cp -r digits/one only/
code 4 "$tandem" train job.yaml --quiet --run-dir bad data.train.path=only data.train.holdout=0 data.eval=null
has "$err" "has one class folder only, 'one'"
code 0 "$tandem" train job.yaml --run-dir flat data.train.path=digits/one data.train.holdout=0 data.eval=null
has "$err" "every label"

# A table names pictures by absolute paths, too; classes that nothing is of are told.
for i in 1 2 3 4; do echo "$PWD/$(ls digits/one/*.png | sed -n "${i}p"),one"; echo "$(ls digits/two/*.png | sed -n "${i}p"),two"; done >table.csv
table=(data.train='{format: image_folder, file: table.csv}' data.eval='{format: image_folder, file: table.csv, range: [0, 3]}')
code 0 "$tandem" data check job.yaml "${table[@]}"
has "$out" "classes     one: 4, two: 4"
code 0 "$tandem" data check job.yaml "${table[@]}" data.train.range='[0, 1]'
has "$out" "no samples  of two"
sed '1s/.*/none.png,one/' table.csv >wrong.csv # it was never there
code 4 "$tandem" data check job.yaml data.train='{format: image_folder, file: wrong.csv}' data.eval=null
grep -q "none.png': there is no such file\$" "$err" || fail "$(cat "$err")"
echo "../digits/one/x.png,one" >>table.csv
code 4 "$tandem" data check job.yaml "${table[@]}"
has "$err" "table.csv', line 9, column 1: '../digits/one/x.png' leads out of '"

# The report shows the worst samples; a picture that is gone is told.
code 0 "$tandem" train job.yaml --quiet --run-dir shown
same "$(grep -o 'src="data:image/png;base64,iVBORw0KGgo' shown/report.html | wc -l)" "$(grep -c '"index"' shown/evaluation.json)" "pictures in report.html"
mv digits moved
code 0 "$tandem" report shown
has shown/report.html "Their pictures cannot be shown: "
hasnt shown/report.html "data:image/png"
mv moved digits

# A configuration from a look at the folder.
code 0 "$tandem" init --task images --data digits -o my.yaml
code 0 "$tandem" train my.yaml --quiet --run-dir mine train.epochs=1
# names that no text of the file can hold
for name in '${env:HOME}' "$(printf 'l\377')"; do
    cp -r digits "$name"
    code 4 "$tandem" init --task images --data "$name" -o none.yaml
    has "$err" "rename the folder"
    [ -e none.yaml ] && fail "none.yaml was made"
done
code 2 "$tandem" init --task images
code 2 "$tandem" init --task mnist --data digits
code 4 "$tandem" init --task images --data new
has "$err" "no class folders"
code 4 "$tandem" init --task images --data only
has "$err" "one class folder only"
# of four pictures a fifth is none, so what init wrote could not be trained
mkdir -p few/four few/two
cp $(ls digits/four/* | head -2) few/four/ && cp $(ls digits/two/* | head -2) few/two/
code 4 "$tandem" init --task images --data few -o none.yaml
has "$err" "'few' has 4 pictures; to train and to test there must be at least 5"
[ -e none.yaml ] && fail "none.yaml was made"
cp $(ls digits/four/* | tail -1) few/four/
code 0 "$tandem" init --task images --data few -o few.yaml
code 0 "$tandem" train few.yaml --quiet --run-dir few-run train.epochs=1
code 0 "$tandem" init --task images --data digits --lang zh
