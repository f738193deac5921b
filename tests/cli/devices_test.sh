# doctor tells of GPUs where the cuda module can work; a run on them keeps the same beside its numbers.
. "$(dirname "$0")/support.sh"
toy

code 0 "$tandem" doctor
hasnt "$out" "parallel.device"
export TANDEM_MODULE_PATH=$EMULATED_MODULES TANDEM_CUDA_LIBRARIES=$EMULATED_LIBRARIES
CUDA_EMULATED_DEVICES=0 code 0 "$tandem" doctor
has "$out" "the NVIDIA driver shows no GPU to this process"
hasnt "$out" "parallel.device"

code 0 "$tandem" doctor
has "$out" "parallel.device    auto uses cuda; device_ids: 0 and 1"
has "$out" "driver             580.82.07, for CUDA 13.0"
has "$out" "NVML               $EMULATED_LIBRARIES/libnvidia-ml.so.1"
has "$out" "cuda:1             Emulated GPU, compute capability 9.0"
has "$out" "cuda:1 peers       NV4  -"
hasnt "$out" "WARNING"
NVML_EMULATED_ECC_ERRORS=1 code 0 "$tandem" doctor
has "$out" "cuda:0 ECC         WARNING: on, 1 uncorrected error since"
NVML_EMULATED_INIT=18 code 0 "$tandem" doctor
has "$out" "NVML               WARNING: it does not start: Driver/library version mismatch"

# The plan of a convolutional net on tensor cores: channels last from the batch on, no reorder, relus behind poolings,
# biases' gradients where they come by.
cat >conv.yaml <<'YAML'
tandem: 1
model:
  input: [3, 16, 16]
  layers: [conv2d: {out: 16, kernel: 3, padding: 1}, relu, maxpool2d: 2, conv2d: {out: 32, kernel: 3}, relu, maxpool2d: 2,
           flatten, linear: 64, relu, linear: 10]
data: {train: {format: synthetic}}
loss: cross_entropy
optimizer: {type: adam}
train: {steps: 2, precision: bf16, batch: {per_device: 32}}
parallel: {device: cuda, threads_per_device: 1}
YAML
code 0 "$tandem" plan conv.yaml
golden plan-cuda.txt "$out"
# The plan between its passes: one to one, and what rewrites make of it; what predicts has no backward.
code 0 "$tandem" plan conv.yaml --after lower
same "$(grep -c '  node  ' "$out")" 10 "nodes after lower"
has "$out" "node   relu "
code 0 "$tandem" plan conv.yaml --after rewrite
has "$out" "rewrite: relu past max pooling, 2 times: "
hasnt "$out" "node   relu "
has "$out" "cuda, relu nhwc"
mkdir without-cudnn
ln -s "$EMULATED_LIBRARIES"/libcublasLt* without-cudnn/
export TANDEM_CUDA_LIBRARIES=$PWD/without-cudnn
code 0 "$tandem" plan conv.yaml train.precision=tf32 --predict
has "$out" "cuda, bias, relu nhwc"
hasnt "$out" "bwd"
# Its outputs are those of the run that trained, to the bit.
code 0 "$tandem" train conv.yaml train.precision=tf32 train.batch.per_device=8 data.eval='{format: synthetic, samples: 40}' \
    eval.every='2 steps' eval.batch=8 --run-dir evaluated --quiet
code 0 "$tandem" eval evaluated
loss=$(grep -oE '"eval_loss": ?[0-9.e-]+' evaluated/summary.json | grep -oE '[0-9.e-]+$')
has "$out" "loss $loss "
export TANDEM_CUDA_LIBRARIES=$EMULATED_LIBRARIES
code 2 "$tandem" plan conv.yaml --after raise
has "$err" "its passes are lower, layout, rewrite"

# What was chosen for each layer; a convolution that cuDNN refuses is slow, and says so once for all of its kind.
code 0 "$tandem" train conv.yaml train.batch.per_device=2 run.dir=null --verbose
has "$err" ", 2 rows, forward: cuDNN implicit_precomp_gemm, bf16, workspace "
has "$err" "in the same call: bias and relu"
hasnt "$err" "im2col"
CUDNN_EMULATED_REFUSES='dw:*' code 0 "$tandem" train conv.yaml train.batch.per_device=2 run.dir=null
has "$err" "(and 1 more): runs by im2col, which is slower: cuDNN refuses every algorithm that it offers for dw; the last, 1: "
CUDNN_EMULATED_REFUSES='dw:*' code 0 "$tandem" bench step conv.yaml train.batch.per_device=2 --iterations 1 --warmup 1 --json
has "$out" '"slow": "runs by im2col'
has "$out" '"algorithm": "cublasLt '

code 0 "$tandem" doctor --json
has "$out" '},"devices":{"parallel.device":"auto uses cuda'
has "$out" '"cuda:0 throttling":"none"'
code 0 "$tandem" train toy.yaml parallel.device=cuda train.steps=2 --run-dir run --quiet
has run/env.json '"cuda:0 memory":"4.0 GiB, '
CUDA_EMULATED_DEVICES=1 code 0 "$tandem" doctor
has "$out" "device_ids: 0"
hasnt "$out" "peers"

# Weights of more classes than a kernel's arguments hold: in the device's memory, which the plan counts.
{
    echo "tandem: 1"
    echo "model: {input: [8], layers: [{linear: 1100}]}"
    echo "data: {train: {format: synthetic, samples: 64}}"
    echo "loss: {type: cross_entropy, label_smoothing: 0.1, weight: [$(seq -s ", " 1100)]}"
    echo "optimizer: {type: sgd, lr: 0.1}"
    echo "train: {steps: 4, batch: {per_device: 8}}"
    echo "parallel: {device: cuda, device_ids: [0, 1], dp: {scatter: strided}}"
} >many.yaml
for mode in single dp ddp; do
    code 0 "$tandem" train many.yaml --mode $mode --run-dir many-$mode --quiet
done
same "$(json many-dp/summary.json params_xxh3)" "$(json many-single/summary.json params_xxh3)" "params_xxh3 of dp"
same "$(json many-ddp/summary.json params_xxh3)" "$(json many-single/summary.json params_xxh3)" "params_xxh3 of ddp"
code 0 "$tandem" train many.yaml --mode single --run-dir many-cpu --quiet parallel.device=cpu
code 0 "$tandem" ckpt diff many-single many-cpu --atol 1e-5 --rtol 1e-5
total() { # of the plan, then of the run
    code 0 "$tandem" plan many.yaml "$@"
    sed -nE 's/^  total .* ([0-9]+) B$/\1/p' "$out"
    rm -rf many-one
    code 0 "$tandem" train many.yaml --run-dir many-one --quiet "$@"
    grep -oE '"peak_memory_bytes":\[[0-9]+' many-one/summary.json | grep -oE '[0-9]+$'
}
one=(parallel.mode=single 'parallel.device_ids=[0]')
total "${one[@]}" >weighted
total "${one[@]}" loss.weight=null >plain
same "$(paste weighted plain | awk '{ print $1 - $2 }' | sort -u)" 8800 "bytes of 1100 weights, planned and taken"

# What NCCL refuses on all ranks alike is no failure unless NCCL was asked for.
ranks() { # BACKEND "STATUS OF RANK 0, OF 1" "VERSION OF NCCL ON RANK 0, ON 1"
    local wanted=($2) version=($3) pids=()
    rm -rf ranks "meet-$1"
    for rank in 0 1; do
        FAKE_NCCL_VERSION=${version[rank]} RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=2 \
            "$tandem" train toy.yaml parallel.device=cuda parallel.mode=ddp 'parallel.device_ids=[0, 1]' train.steps=2 \
            parallel.ddp.backend="$1" parallel.ddp.init_method="file://$PWD/meet-$1" --run-dir ranks \
            >"rank$rank.out" 2>"rank$rank.err" &
        pids+=($!)
    done
    for rank in 0 1; do
        wait "${pids[rank]}"
        same $? "${wanted[rank]}" "status of rank $rank with backend $1"
    done
}
ranks auto "0 0" "23007 23008"
has rank0.err "warning: comm: nccl is not used, gradients are reduced in host memory: nccl: ranks have different versions"
ranks nccl "11 11" "23007 23008"
has rank0.err "error: nccl: ranks have different versions"

# A device of a stage fails while the stages of two ranks exchange statistics: nobody waits for the deadline.
cat >staged.yaml <<'YAML'
tandem: 1
name: staged
model:
  input: [3, 8, 8]
  layers:
    - conv2d: {out: 8, kernel: 3}
    - batchnorm2d
    - relu
    - conv2d: {out: 8, kernel: 3, stage: 1}
    - batchnorm2d
    - flatten
    - linear: {out: 5, stage: 2}
    - batchnorm1d
data: {train: {format: synthetic, samples: 64}}
optimizer: {type: sgd, lr: 0.01}
train: {steps: 20, batch: {per_device: 8}, accumulate: 4}
parallel: {mode: ddp, stages: 3, device: cuda, device_ids: [0, 1, 2, 3, 4, 5], sync_batchnorm: true}
YAML
pids=()
for rank in 0 1; do
    CUDA_EMULATED_DEVICES=6 CUDA_EMULATED_FAIL_WORK_AT=$((rank * 1500)) \
        RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=2 "$tandem" train staged.yaml --quiet \
        parallel.ddp.init_method="file://$PWD/meet-staged" --run-dir staged 2>"rank$rank.err" &
    pids+=($!)
done
for rank in 0 1; do
    wait "${pids[rank]}"
    same $? $((7 - 2 * rank)) "status of rank $rank, a stage of rank 1 having failed"
done
has rank0.err "rank 1: "
has rank1.err "an illegal memory access was encountered"

# A rank that cannot use NCCL is named by the one that can; the sums are those of host memory, with NCCL's bits here.
ranks auto "0 0" "23007 23007"
hasnt rank0.err "host memory"
with=$(json ranks/summary.json params_xxh3)
ranks auto "0 0" "23007 21000"
has rank0.err "warning: comm: rank 1 has no nccl: gradients are reduced in host memory"
hasnt rank1.err "host memory"
same "$(json ranks/summary.json params_xxh3)" "$with" params_xxh3
ranks auto "0 0" "21000 23007"
has rank1.err "warning: comm: rank 0 has no nccl: gradients are reduced in host memory"
ranks nccl "7 11" "23007 21000"
has rank0.err "rank 1: parallel.ddp.backend: nccl is not available: "
has rank1.err "error: parallel.ddp.backend: nccl is not available: "
