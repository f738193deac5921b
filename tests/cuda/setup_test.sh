#!/usr/bin/env bash
# tools/setup --cuda: what is missing is fetched, from wheels made here, what is there is not; the build is configured
# with it. The CUDA compiler and CMake are played.
#   setup_test.sh SOURCE
set -euo pipefail
source=$1
python3 -m pip --version >/dev/null 2>&1 || { echo "no pip here" && exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/setup-cuda-XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/wheels"

fail() {
    echo "setup_test: $*" >&2
    exit 1
}

printf '#!/bin/sh\nexit 1\n' >"$work/bin/nvcc" # it finds no header
printf '#!/bin/sh\necho "$@" >>%s/configured\necho "-- module cuda: yes"\n' "$work" >"$work/bin/cmake"
chmod +x "$work"/bin/*
python3 - "$work/wheels" <<'PY'
import sys, zipfile
for name, version, folder, header, library in [
        ("nvidia_cublas", "13.0.1", "cu13", "cublasLt.h", "libcublasLt.so.13"),
        ("nvidia_cudnn_cu13", "9.1.0", "cudnn", "cudnn.h", "libcudnn.so.9"),
        ("nvidia_nccl_cu13", "2.30.0", "nccl", "nccl.h", "libnccl.so.2")]:
    with zipfile.ZipFile("%s/%s-%s-py3-none-any.whl" % (sys.argv[1], name, version), "w") as wheel:
        info = "%s-%s.dist-info/" % (name, version)
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (name.replace("_", "-"), version))
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(info + "RECORD", "")
        wheel.writestr("nvidia/%s/include/%s" % (folder, header), "")
        wheel.writestr("nvidia/%s/lib/%s" % (folder, library), "")
PY

setup() {
    env -u CUDACXX PATH="$work/bin:$PATH" PIP_NO_INDEX=1 PIP_FIND_LINKS="$work/wheels" PIP_CONFIG_FILE=/dev/null \
        "$source/tools/setup" --cuda "$work/build" >"$work/out" 2>"$work/err" || { cat "$work/out" "$work/err" && fail "it failed"; }
}

setup
for file in cu13/include/cublasLt.h cudnn/include/cudnn.h nccl/include/nccl.h; do
    [ -e "$work/build/nvidia-packages/nvidia/$file" ] || fail "$file was not fetched"
done
[ "$(grep -c '^  nvidia-' "$work/err")" -eq 3 ] || fail "it does not say what it fetches"
grep -q -- "-DTDM_NVIDIA_ROOT=$work/build/nvidia-packages/nvidia" "$work/configured" || fail "the build is not configured with it"
grep -q "module cuda: yes" "$work/out" || fail "what CMake found is not shown"
grep -q "TANDEM_CUDA_LIBRARIES=.*/nvidia/cu13/lib:" "$work/out" || fail "it does not say how to run"

rm -r "$work/build/nvidia-packages/nvidia/cudnn"
setup
[ "$(grep -c '^  nvidia-' "$work/err")" -eq 1 ] || fail "it does not fetch what is missing, alone"
[ -e "$work/build/nvidia-packages/nvidia/cudnn/lib/libcudnn.so.9" ] || fail "what was missing is still missing"
[ -e "$work/build/nvidia-packages/nvidia/nccl/lib/libnccl.so.2" ] || fail "what was there is gone"
setup
! grep -q '^  nvidia-' "$work/err" || fail "it fetches what is there"

if [ ! -x /usr/local/cuda/bin/nvcc ] && ! PATH=/usr/bin:/bin command -v nvcc >/dev/null; then
    code=0
    rm "$work/bin/nvcc"
    env -u CUDACXX PATH="$work/bin:/usr/bin:/bin" "$source/tools/setup" --cuda "$work/build" >"$work/out" 2>"$work/err" || code=$?
    [ $code -eq 11 ] && grep -q "there is no CUDA compiler" "$work/err" || fail "without a compiler it ends with $code"
fi
echo "setup_test: fetched what was missing, and no more"
