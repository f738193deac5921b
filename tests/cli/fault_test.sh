# Things that go wrong, each with its status and a message that says what to do.
. "$(dirname "$0")/support.sh"
toy

sed 's/train: {format: synthetic.*/train: {format: idx, images: no.gz, labels: no.gz}/' toy.yaml >nodata.yaml
code 4 "$tandem" train nodata.yaml --run-dir nodata
has "$err" "no.gz"
# a file that is not there is shown where it is named
named_at() { # PLACE LINE: the last run said the place, the line, and a caret under the column
    local column=${1##*:}
    has "$err" "$1: "
    has "$err" "$2"
    grep -qE "^ {$((column - 1))}\^\$" "$err" || fail "no caret in column $column"
}
named_at nodata.yaml:11:32 "  train: {format: idx, images: no.gz, labels: no.gz}"
"$tandem" data make there --format idx --samples 20 >/dev/null
cat >block.yaml <<'YAML'
tandem: 1
model:
  input: [1, 28, 28]
  layers: [flatten, {linear: 10}]
  weights: old/model.safetensors   # 权重
data:
  train:
    format: idx
    images: there/images-idx3-ubyte
    labels: there/gone
  transform: [to_float]
train: {steps: 2, batch: {per_device: 4}}
run: {dir: null}
YAML
code 4 "$tandem" train block.yaml
named_at block.yaml:10:13 "    labels: there/gone"
for mode in dp ddp; do
    code 4 "$tandem" train block.yaml --mode $mode parallel.device_ids='[0, 1]'
    named_at block.yaml:10:13 "    labels: there/gone"
done
code 4 "$tandem" data check block.yaml
named_at block.yaml:10:13 "    labels: there/gone"
code 4 "$tandem" train block.yaml data.train.labels=elsewhere
has "$err" "error: command line: data.train.labels: "
has "$err" "elsewhere"
hasnt "$err" "block.yaml:"
# ... or with the key that names it on the command line
for mode in single dp ddp; do
    code 4 "$tandem" train block.yaml --mode $mode parallel.device_ids='[0, 1]' data.train.images=no/such
    has "$err" "error: command line: data.train.images: "
done
code 4 "$tandem" train block.yaml 'data.train={format: npy, x: no/such, y: no/such}'
has "$err" "error: command line: data.train.x: "
code 8 "$tandem" train block.yaml data.train.labels=there/labels-idx1-ubyte model.weights=no/such
has "$err" "error: command line: model.weights: "
code 8 "$tandem" train block.yaml data.train.labels=there/labels-idx1-ubyte
named_at block.yaml:5:12 "  weights: old/model.safetensors   # 权重"
sed 's/there\/gone/there\/labels-idx1-ubyte/; s/^  weights.*//' block.yaml >resume.yaml
echo 'checkpoint: {every: 1 epoch, resume: runs/gone}' >>resume.yaml
code 8 "$tandem" train resume.yaml
named_at resume.yaml:14:38 "checkpoint: {every: 1 epoch, resume: runs/gone}"
code 8 "$tandem" train resume.yaml --resume no/such
has "$err" "error: command line: checkpoint.resume: "
sed 's/format: idx/format: npy/; s/images: .*/x: gone.npy/; s/labels: .*/y: gone.npy/; s/^  weights.*//' block.yaml >npy.yaml
code 4 "$tandem" train npy.yaml
named_at npy.yaml:9:8 "    x: gone.npy"
sed 's/28, 28/32, 32/; s/\[1,/[3,/; s/format: idx/format: cifar10/; s/images: .*/path: gone/; s/^  *labels: .*//; s/^  weights.*//' block.yaml >cifar.yaml
code 4 "$tandem" train cifar.yaml
named_at cifar.yaml:9:11 "    path: gone"
# so is a file whose labels do not fit, or are too few
sed 's/there\/gone/there\/labels-idx1-ubyte/; s/^  weights.*//; s/linear: 10/linear: 2/' block.yaml >labels.yaml
code 4 "$tandem" train labels.yaml
named_at labels.yaml:10:13 "    labels: there/labels-idx1-ubyte"
has "$err" "(the model has 2 outputs)"
code 4 "$tandem" train labels.yaml data.train.labels=there/labels-idx1-ubyte
has "$err" "error: command line: data.train.labels: "
hasnt "$err" "labels.yaml:"
"$tandem" data make fewer --format idx --samples 10 >/dev/null
code 4 "$tandem" data check labels.yaml data.train.labels=fewer/labels-idx1-ubyte
has "$err" "error: command line: data.train.labels: "
[ -e nodata/metrics.jsonl ] && fail "a run directory was filled without data"
code 11 "$tandem" train toy.yaml parallel.device=cuda run.dir=null
has "$err" "; write parallel.device=cpu to do without"
has "$err" "cuda"
code 9 "$tandem" train toy.yaml optimizer.lr=1e6 optimizer.type=sgd --run-dir nan
has "$err" "loss of step"
same "$(json nan/status.json exit_code)" 9 exit_code
: >file
code 10 "$tandem" train toy.yaml --run-dir file/run
has "$err" "file"
code 8 "$tandem" train toy.yaml --resume nowhere --run-dir r
code 2 "$tandem" train toy.yaml "optimizer.lr"
code 10 bash -c "'$tandem' explain layers >/dev/full"
# status.json is true after a start that came to nothing, too
code 0 "$tandem" train toy.yaml --run-dir again --quiet
code 4 "$tandem" train toy.yaml --run-dir again "data.train={format: idx, images: no.gz, labels: no.gz}"
same "$(json again/status.json exit_code)" 4 exit_code
same "$(json again/status.json state)" failed state

# a reader who has gone: what is kept in files is kept; what is not ends as any program's output does
mkfifo pipe
(exec 3<>pipe 4>pipe 3<&-; trap - PIPE; exec "$tandem" schema >&4)
same $? 141 "status of schema without a reader"
(exec 3<>pipe 4>pipe 3<&-; trap - PIPE; exec "$tandem" train toy.yaml --run-dir unread >&4)
same $? 0 "status of train without a reader"
same "$(json unread/status.json state)" finished "state without a reader"

# output that neither the buffer nor the pipe can hold: a stop signal ends the wait for a reader
{
    sed '/layers:/q' toy.yaml
    for i in $(seq 1100); do echo "    - relu: {name: a_name_that_makes_the_text_of_this_job_long_and_longer_$i}"; done
    sed '1,/layers:/d' toy.yaml
} >long.yaml
exec 5<>pipe
head -c 65536 /dev/zero >&5
"$tandem" train long.yaml --print-config >&5 2>"$err" </dev/null &
pid=$!
eventually grep -q '^SigCgt:.*[1-9a-f]' /proc/$pid/status
sleep 0.5
kill -TERM $pid
got=0
wait $pid || got=$?
same $got 143 "status of output that nobody reads, after SIGTERM"
has "$err" "nobody reads standard output"
exec 5>&-

# a full disk behind stdout: what is kept in files is not lost, in every mode; anything else is
for mode in single dp ddp; do
    "$tandem" train toy.yaml --mode $mode --run-dir full-$mode >/dev/full 2>"$err" </dev/null
    same $? 0 "status of $mode on a full disk"
    same "$(json full-$mode/status.json state)" finished "state of $mode on a full disk"
    same "$(grep -c 'warning: standard output could not be written' "$err")" 1 "warnings of $mode on a full disk"
    (exec 3<>pipe 4>pipe 3<&-; trap - PIPE; exec "$tandem" train toy.yaml --mode $mode --run-dir unread-$mode >&4 2>/dev/null)
    same $? 0 "status of $mode without a reader"
    same "$(json unread-$mode/status.json state)" finished "state of $mode without a reader"
    code 10 bash -c "'$tandem' train toy.yaml --mode $mode run.dir=null >/dev/full"
done
code 10 bash -c "'$tandem' train toy.yaml --print-config >/dev/full"
code 0 bash -c "'$tandem' compare toy.yaml --steps 5 --out compared >/dev/full"

# one run directory, one job
"$tandem" train toy.yaml train.steps=2000000 --run-dir busy --quiet >/dev/null 2>&1 </dev/null &
pid=$!
eventually test -e busy/status.json
code 10 "$tandem" train toy.yaml --run-dir busy
has "$err" "in use"
kill -TERM $pid
got=0
wait $pid || got=$?
same $got 75 "status of the first job"
