# Wrong use is status 2 with the nearest right word; help is complete and on stdout.
. "$(dirname "$0")/support.sh"

code 2 "$tandem"
has "$err" "usage: tandem VERB"
code 0 "$tandem" --version
has "$out" "tandem 0."
code 0 "$tandem" --help
golden help.txt "$out"
code 0 "$tandem" help exit-codes
golden exit-codes.txt "$out"
code 0 "$tandem" help env
has "$out" "WORLD_SIZE"
has "$out" "TANDEM_MODULE_PATH"
for verb in train launch compare eval predict export check show explain schema plan init ckpt data bench burnin doctor report; do
    code 0 "$tandem" "$verb" --help
    has "$out" "usage: tandem $verb"
    has "$out" "flags:"
    same "$(wc -c <"$err")" 0 "stderr of $verb --help"
    cp "$out" "help-$verb.txt"
    code 0 "$tandem" help "$verb"
    cmp -s "$out" "help-$verb.txt" || fail "help $verb is not $verb --help"
done
golden help-train.txt help-train.txt

code 2 "$tandem" trian x.yaml
has "$err" "did you mean \`tandem train\`?"
code 2 "$tandem" job.yaml --steps 3
has "$err" "did you mean \`tandem train job.yaml\`?"
code 2 "$tandem" version
has "$err" "did you mean \`tandem --version\`?"
code 2 "$tandem" help trian
code 2 "$tandem" zzzzzzzz
has "$err" "tandem --help"
# a host among several: what it must be told, and that one process is no such job
code 2 "$tandem" launch x.yaml --node-rank 0 --master-addr a
has "$err" "\`--nnodes\` is missing"
code 2 "$tandem" launch x.yaml --nnodes 2 --node-rank 2 --master-addr a
has "$err" "must be below \`--nnodes\`"
printf '%s\n' 'tandem: 1' 'model: {input: [4], layers: [{linear: {out: 2}}]}' 'loss: mse' 'optimizer: {type: sgd, lr: 0.1}' \
    'data: {train: {format: synthetic, samples: 8}}' 'train: {steps: 2, batch: {per_device: 2}}' >hosts.yaml
code 2 "$tandem" launch hosts.yaml --nnodes 2 --node-rank 0 --master-addr a
has "$err" "starts the ranks of mode ddp, but the job has mode single; add --mode ddp"

code 2 "$tandem" train x.yaml --stesp 3
has "$err" "did you mean \`--steps\`?"
# What scripts for PyTorch call it is answered with the key to write.
wrong_flag() { # KEY FLAG...
    local key=$1
    shift
    code 2 "$tandem" train x.yaml "$@"
    has "$err" "\`tandem train\` has no flag \`${1%%=*}\`; write the key: $key"
    same "$(wc -l <"$err")" 2 "lines about $1"
}
wrong_flag optimizer.lr=0.1 --lr 0.1
wrong_flag optimizer.lr=0.1 -lr 0.1
wrong_flag optimizer.lr=3e-4 --learning-rate=3e-4
wrong_flag train.epochs=3 --epochs=3
wrong_flag train.epochs=... --epochs
wrong_flag train.epochs=... --epochs --steps 3
wrong_flag train.batch.per_device=32 --batch-size 32
wrong_flag train.batch.per_device=32 --batch_size=32
wrong_flag train.batch.per_device=32 -b 32
wrong_flag data.workers=4 --workers 4
wrong_flag data.workers=4 -j 4
wrong_flag seed=1 --seed 1
wrong_flag optimizer.momentum=0.9 --momentum 0.9
wrong_flag optimizer.weight_decay=1e-4 --wd 1e-4
wrong_flag optimizer=adam --optimizer adam
wrong_flag parallel.device=cpu --device cpu
wrong_flag parallel.device=cuda --device gpu
wrong_flag "parallel.device=cuda 'parallel.device_ids=[1]'" --device cuda:1
wrong_flag "parallel.device=cuda 'parallel.device_ids=[0]'" --device 0
wrong_flag "parallel.device=cuda 'parallel.device_ids=[0,1]'" --device 0,1
wrong_flag parallel.device=... --device mps
wrong_flag parallel.device=cpu --no-cuda
wrong_flag "'parallel.device_ids=[0, 1]'" --gpus 2
wrong_flag "'parallel.device_ids=[0,3]'" --gpus=0,3
wrong_flag "'parallel.device_ids=[1]'" --gpu 1
wrong_flag "'parallel.device_ids=[0, ...]'" --gpus all
wrong_flag "'parallel.device_ids=[0, ...]'" --gpus=-1
wrong_flag train.batch.per_device=3 --batch 3
wrong_flag "'checkpoint.every=500 steps'" --save-steps 500
wrong_flag parallel.ddp.backend=nccl --dist-backend nccl
wrong_flag optimizer.lr=1 --optimizer.lr=1
wrong_flag model.weights=... --pretrained run.dir=runs/a
wrong_flag run.dir=runs/a --output runs/a
code 2 "$tandem" check x.yaml --mode dp
has "$err" "write the key: parallel.mode=dp"
# ... or with what else says it here
say() { # ANSWER ARGUMENT...
    code 2 "$tandem" "${@:2}"
    has "$err" "; write $1"
    same "$(wc -l <"$err")" 2 "lines about $*"
}
say "tandem --version" train x.yaml --version
say "tandem --version" check -V
say "only x.yaml" train --config x.yaml
say "--resume a.pt" train x.yaml --checkpoint a.pt
say "--resume 'a b'" train x.yaml --ckpt='a b'
say "--weights a.pt" eval x.yaml --checkpoint a.pt
say "--out X" compare x.yaml --run-dir X
say "--out X" predict x.yaml --output_dir=X
say "tandem eval RUN-DIR" train x.yaml --evaluate
for flag in "--local-rank 1" --local_rank=1 --local-rank=0 "--rank 1" "--master_port 29500"; do
    say "nothing: the launcher sets it" train x.yaml $flag
done
code 2 "$tandem" train x.yaml --every 5
hasnt "$err" "write the key"
code 2 "$tandem" report runs/a --lr 5
hasnt "$err" "optimizer.lr"
code 2 "$tandem" train
has "$err" "an argument is missing"
code 2 "$tandem" train a.yaml b.yaml
has "$err" "unexpected argument"
code 2 "$tandem" train toy.yaml optimizer.lr
has "$err" "unexpected argument \`optimizer.lr\`; to set a key write \`optimizer.lr=VALUE\`"
code 2 "$tandem" check toy.yaml toy.yaml
hasnt "$err" "to set a key"
code 2 "$tandem" train x.yaml --mode
has "$err" "\`--mode\` needs a value, single|dp|ddp: how devices share the work (parallel.mode)"
code 2 "$tandem" train x.yaml --resume --quiet
has "$err" "\`--resume\` needs a value, auto|never|PATH"
code 2 "$tandem" train x.yaml --dry-run=yes
has "$err" "takes no value"
code 2 "$tandem" train x.yaml --steps three
has "$err" "whole number"
code 2 "$tandem" train x.yaml --steps 1 --steps 2
has "$err" "given twice"
code 2 "$tandem" train x.yaml --color sometimes
code 2 "$tandem" check x.yaml --format xml
code 2 "$tandem" ckpt dif a b
has "$err" "did you mean \`diff\`?"
code 2 "$tandem" ckpt ls a b
code 2 "$tandem" ckpt diff a
code 2 "$tandem" compare x.yaml --modes dp
code 2 "$tandem" bench steps x.yaml
has "$err" "did you mean \`step\`?"
code 2 "$tandem" explain no.such.key
code 2 "$tandem" init --task imagse --data .
has "$err" "there is no starter 'imagse'; did you mean images?"
code 2 "$tandem" init --task image
has "$err" "did you mean images?; the starters are images, table, series, cifar,"
code 2 "$tandem" init --task nothing
code 2 "$tandem" ckpt convert x

# colour only where it was asked for
code 0 "$tandem" --help
hasnt "$out" $'\033'
code 2 "$tandem" train x.yaml --stesp 3 --color always
has "$err" "did you mean"
NO_COLOR=1 code 2 "$tandem" trian
hasnt "$err" $'\033'
CLICOLOR_FORCE=1 code 2 "$tandem" trian
has "$err" $'\033'
