# Arrays that stay on the disk: the bits are those of arrays in memory, and what is wrong with the files is told. The
# large files are sparse.
. "$(dirname "$0")/support.sh"

rows=400000 # of 784 bytes: more than what is held in memory
code 0 "$tandem" data make d --format npy --samples 300 --seed 3
grow() { # FROM TO TYPE SHAPE BYTES: the array with another shape, the rest of it zeros
    { printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '$3', 'fortran_order': False, 'shape': $4, }"; tail -c +129 "$1"; } >"$2"
    truncate -s $((128 + $5)) "$2"
}
grow d/x.npy x.npy '|u1' "($rows, 1, 28, 28)" $((rows * 784))
grow d/y.npy y.npy '<i8' "($rows,)" $((rows * 8))
cat >job.yaml <<'YAML'
tandem: 1
seed: 5
model: {input: [1, 28, 28], layers: [flatten, {linear: 16}, relu, {linear: 10}]}
data:
  train: {format: npy, x: x.npy, y: y.npy, range: [0, 240]}
  eval: {format: npy, x: x.npy, y: y.npy, range: [240, 300]}
  transform: [to_float, {normalize: {mean: [0.1], std: [0.3]}}]
optimizer: {type: sgd, lr: 0.1}
train: {epochs: 3, batch: {global: 20}}
parallel: {device: cpu, device_ids: [0, 1], dp: {scatter: strided}}
log: {every: 1 steps}
YAML

# in every mode the bits of arrays in memory
for mode in single dp ddp; do
    code 0 "$tandem" train job.yaml --mode $mode --run-dir disk-$mode
    code 0 "$tandem" train job.yaml --mode $mode --run-dir memory-$mode data.{train,eval}.x=d/x.npy data.{train,eval}.y=d/y.npy
    for key in params_xxh3 accuracy; do
        same "$(json disk-$mode/summary.json $key)" "$(json memory-$mode/summary.json $key)" "$key in $mode"
    done
done
same "$(json disk-ddp/summary.json params_xxh3)" "$(json disk-single/summary.json params_xxh3)" "ddp and single"
code 0 "$tandem" train job.yaml --mode single --run-dir held-disk data.train.holdout=0.25 data.eval=null
code 0 "$tandem" train job.yaml --mode single --run-dir held-memory data.train.holdout=0.25 data.eval=null data.train.{x=d/x,y=d/y}.npy
same "$(json held-disk/summary.json params_xxh3)" "$(json held-memory/summary.json params_xxh3)" "a part by chance"

# the samples are not in memory: a limit far below their 299 MiB holds, and the plan counts labels alone
code 0 "$tandem" train job.yaml --mode single --run-dir small host.memory_limit=32MiB
code 0 "$tandem" plan job.yaml parallel.mode=single --memory
samples=$(sed -nE 's/^  samples .* ([0-9]+) B$/\1/p' "$out")
[ "$samples" -ge $((rows * 8 * 2)) ] && [ "$samples" -lt $((rows * 8 * 5)) ] || fail "the plan counts $samples bytes of samples"

# ranks that have copies of their own read all of them
pair() { # CODE X: two ranks, as torchrun starts them; the second has X
    local rank status
    port=$((20000 + (${port:-$$} + 1) % 20000))
    for rank in 0 1; do
        RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
            "$tandem" train job.yaml --mode ddp --run-dir pair data.train.x="$([ $rank = 0 ] && echo x.npy || echo "$2")" \
            >"rank-$rank.out" 2>"rank-$rank.err" </dev/null &
        pids[rank]=$!
    done
    for rank in 0 1; do
        status=0
        wait "${pids[rank]}" || status=$?
        same "$status" "$1" "status of rank $rank: $(tail -3 "rank-$rank.err")"
    done
}
cp --sparse=always x.npy copy.npy
pair 0 copy.npy
same "$(json pair/summary.json params_xxh3)" "$(json disk-ddp/summary.json params_xxh3)" "ranks with copies"
printf '\x05' | dd of=copy.npy bs=1 seek=$((128 + 239 * 784 + 500)) conv=notrunc status=none
rm -rf pair
pair 7 copy.npy
for rank in 0 1; do
    has "rank-$rank.err" "ranks differ in data.train (all samples' bytes): rank 1 has "
    hasnt "rank-$rank.err" "step 1"
done

# a file that is cut short while a job reads it ends the job
code 0 cp --sparse=always x.npy cut.npy
"$tandem" train job.yaml --mode ddp --run-dir cut data.{train,eval}.x=cut.npy train.epochs=1000000 >"$out" 2>"$err" </dev/null &
job=$!
eventually test -s cut/metrics.jsonl
truncate -s 100000 cut.npy
status=0
wait $job || status=$?
same "$status" 4 "a file that was cut short"
has "$err" "cut.npy': sample "
has "$err" " cannot be read: the file had 313600128 bytes when it was opened and has 100000 now"
same "$(grep -c 'tandem: error' "$err")" 1 "errors told"
same "$(left_over)" "" "processes left over"
