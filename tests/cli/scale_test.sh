# plan --scale: the prediction of more devices, with times that are given, so that every number is known.
. "$(dirname "$0")/support.sh"
networks=$here/scale
cp "$networks/vgg16.yaml" net.yaml
given=(--times 138.5ms,277ms,2ms,0ms)

code 0 "$tandem" plan net.yaml --scale --hosts 256 --devices 4 --link 25Gb,20us --device p100 "${given[@]}"
golden scale.txt "$out"
code 0 "$tandem" plan net.yaml --scale --hosts 3 --devices 2 --cores 4 --link 10Gb,50us,2ns --local 5GB/s,3us "${given[@]}"
golden scale-cpu.txt "$out"
code 0 "$tandem" plan net.yaml --scale --hosts 2 --devices 4 --link 25Gb,20us --device a100 --json
[ "$(grep -o '"devices":[0-9]*' "$out" | tr '\n' ' ')" = '"devices":1 "devices":2 "devices":4 "devices":8 ' ] || fail "the devices of JSON"
has "$out" '"source":"estimated"'

# any flag that describes a scale asks for it, and `--predict` beside one is no other plan
code 0 "$tandem" plan net.yaml --predict --hosts 2 --devices 8 --link 25Gb,20us --device h100
has "$out" "16       2"
code 0 "$tandem" plan net.yaml --predict
hasnt "$out" "efficiency"
hasnt "$out" "bwd"

# measured here: the step of one device alone, with the job's data
toy
code 0 "$tandem" plan toy.yaml --scale --hosts 2 --link 1Gb,50us
has "$out" "measured here"
has "$out" "4       2"
code 0 "$tandem" plan toy.yaml --scale --hosts 2 checkpoint.keep_best=loss 'train.stop_early={metric: loss, after: 3}' \
    'schedule={type: plateau, metric: loss}' 'data.eval={format: synthetic, samples: 16}' "eval.every=1 epoch"
has "$out" "measured here"

# and what ranks of a host cost one another on this machine, and how many of them its cores are for; unless it is given
first=$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')
code 0 taskset -c "$first" "$tandem" plan net.yaml --scale --hosts 1 --devices 4 "${given[@]}"
[ "$(grep -c "of a processor for a byte: measured here" "$out")" = 1 ] || fail "the cost within a host: $(cat "$out")"
has "$out" "4 devices with 1 thread each, 1 core;"
awk '$1 == 1 { one = $3 } $1 == 4 && $3 < 4 * one { exit 1 }' "$out" || fail "four ranks on one core: $(cat "$out")"
code 0 "$tandem" plan net.yaml --scale --hosts 1 --devices 4 --local 5GB/s,3us "${given[@]}"
hasnt "$out" "measured here"
code 0 "$tandem" plan net.yaml --scale --hosts 1 --devices 4 --device cpu "${given[@]}"
hasnt "$out" "measured here"
has "$out" "4 devices with 1 thread each, 4 cores"

code 4 "$tandem" plan toy.yaml --scale 'data.train={format: npy, x: none.npy, y: none.npy}' data.eval=null
has "$err" "--device NAME or --times F,B,REST"

# two devices at once show what they take from one another, if the machine has cores for both
code 0 "$tandem" plan toy.yaml --scale --hosts 1 --devices 2 parallel.threads_per_device=1 --json
[ "$(nproc)" = 1 ] || grep -qE '"beside":[1-9]' "$out" || fail "computation beside others: $(cat "$out")"

# a host that reads 100 samples a second, for two devices with 32 each in a step
code 0 "$tandem" plan net.yaml --scale --hosts 1 --devices 2 --device p100 "${given[@]}" train.batch.per_device=32 --loader 100
has "$out" "it reads at most 100 samples/s"
awk '$1 == 2 && $3 == "640.000" { found = 1 } END { exit !found }' "$out" || fail "what a host reads: $(cat "$out")"

# what is refused
refused() { # STATUS TEXT ARGUMENT...
    local status=$1 text=$2
    shift 2
    code "$status" "$tandem" plan net.yaml "$@"
    has "$err" "$text"
}
refused 2 "a connection begins with its rate, such as 25Gb" --link 25,20us
refused 2 "behind the rate comes the latency" --link 25Gb
refused 2 "a connection begins with its rate" --local fast
refused 2 "such as 46ms,107ms,6.6ms" --times 46ms
refused 2 "there is no device 'h1000' in the table; it has h100, h200, a100, v100, p100, cpu" --device h1000
refused 2 "at least 1, got \`0\`" --hosts 0
refused 2 "\`--cores\` must be a number above 0, got \`0\`" --cores 0
refused 2 "\`--loader\` must be a number above 0, got \`-1\`" --loader -1
refused 2 "the most is 1048576" --hosts 1000000 --devices 8 --device h100
refused 2 "\`--graph\` and \`--scale\` cannot be used together" --graph --scale
refused 2 "\`--memory\` and \`--link\` cannot be used together" --memory --link 25Gb,20us
refused 2 "must be auto, segments, ring, tree or levels" --all-reduce star
refused 11 "set parallel.stages=1" --scale --device h100 parallel.stages=2 'parallel.device_ids=[0, 1]'
refused 11 "powersgd" --scale --device h100 'parallel.ddp.compress={type: powersgd, rank: 2}'

# What others have published: NAME EFFICIENCY AMONG-DEVICES NETWORK ARGUMENT...; at most a tenth away from it. The sources
# are in runtime/docs/scale.md.
published() {
    local name=$1 want=$2 base=$3 network=$4
    shift 4
    code 0 "$tandem" plan "$networks/$network.yaml" --json "$@"
    grep -oE '"devices":[0-9]+|"efficiency":[0-9.e-]+' "$out" | tr '\n' ' ' | awk -v name="$name" -v want="$want" -v base="$base" '{
        for (i = 1; i < NF; i += 2) { split($i, d, ":"); split($(i + 1), e, ":"); last = e[2]; if (d[2] == base) first = e[2] }
        got = 100 * last / first
        if (got < 0.9 * want || got > 1.1 * want) { print name ": predicted " got " %, published " want " %"; exit 1 }
    }' || fail "$name"
}
horovod=(--devices 4 --link 25Gb,20us --device p100 --all-reduce ring)
published "VGG-16 on 128 P100" 79 1 vgg16 --hosts 32 "${horovod[@]}" --times 138.5ms,277ms,2ms
published "VGG-16 on 512 P100" 68 1 vgg16 --hosts 128 "${horovod[@]}" --times 138.5ms,277ms,2ms
published "ResNet-101 on 128 P100" 90 1 resnet101 --hosts 32 "${horovod[@]}"
published "ResNet-101 on 512 P100" 90 1 resnet101 --hosts 128 "${horovod[@]}"
published "ResNet-50 from 8 to 256 P100" 90 8 resnet50 --hosts 32 --devices 8 --link 50Gb,20us --device p100 --all-reduce levels
published "VGG-16 on 8 P100" 87.7 1 vgg16 --hosts 1 --devices 8 --local 126Gb,5us --device p100 --all-reduce ring --times 138.5ms,277ms,2ms
a100=(--hosts 1 --devices 8 --device a100 train.batch.per_device=256)
published "ResNet-50 in tf32 on 8 A100" 96.5 1 resnet50 "${a100[@]}"
published "ResNet-50 in 16 bits on 8 A100" 84 1 resnet50 "${a100[@]}" train.precision=bf16 --loader 17400
published "ResNet-50 on 8 V100" 97 1 resnet50 --hosts 1 --devices 8 --device v100 train.batch.per_device=128
