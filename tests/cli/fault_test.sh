# Things that go wrong, each with its status and a message that says what to do.
. "$(dirname "$0")/support.sh"
toy

sed 's/train: {format: synthetic.*/train: {format: idx, images: no.gz, labels: no.gz}/' toy.yaml >nodata.yaml
code 4 "$tandem" train nodata.yaml --run-dir nodata
has "$err" "no.gz"
[ -e nodata/metrics.jsonl ] && fail "a run directory was filled without data"
code 11 "$tandem" train toy.yaml parallel.device=cuda run.dir=null
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
finish
