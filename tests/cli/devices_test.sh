# doctor tells of GPUs where the cuda module can work; a run on them keeps the same beside its numbers.
. "$(dirname "$0")/support.sh"
toy

code 0 "$tandem" doctor
hasnt "$out" "parallel.device"
export TANDEM_MODULE_PATH=$EMULATED_MODULES TANDEM_CUDA_LIBRARIES=$EMULATED_LIBRARIES
CUDA_EMULATED_DEVICES=0 code 0 "$tandem" doctor
has "$out" "no GPU that it shows to this process"
hasnt "$out" "parallel.device"

code 0 "$tandem" doctor
has "$out" "parallel.device    auto takes cuda; device_ids: 0 and 1"
has "$out" "driver             580.82.07, for CUDA 13.0"
has "$out" "NVML               $EMULATED_LIBRARIES/libnvidia-ml.so.1"
has "$out" "cuda:1             Emulated GPU, compute capability 9.0"
has "$out" "cuda:1 peers       NV4  -"
hasnt "$out" "WARNING"
NVML_EMULATED_ECC_ERRORS=1 code 0 "$tandem" doctor
has "$out" "cuda:0 ECC         WARNING: on, 1 uncorrected error since"
NVML_EMULATED_INIT=18 code 0 "$tandem" doctor
has "$out" "NVML               WARNING: it does not start: Driver/library version mismatch"

code 0 "$tandem" doctor --json
has "$out" '},"devices":{"parallel.device":"auto takes cuda'
has "$out" '"cuda:0 throttling":"none"'
code 0 "$tandem" train toy.yaml parallel.device=cuda train.steps=2 --run-dir run --quiet
has run/env.json '"cuda:0 memory":"4.0 GiB, '
CUDA_EMULATED_DEVICES=1 code 0 "$tandem" doctor
has "$out" "device_ids: 0"
hasnt "$out" "peers"
finish
