#!/usr/bin/env bash
# The programs of samples/embed_c that learn a ring: what they have learned is right, and they are short. How
# much they do meanwhile depends on the machine's load, and is not looked at.
# samples.sh SOURCE PROGRAMS
set -euo pipefail
source=$1 programs=$2 folder=$1/samples/embed_c
says() { # PROGRAM PATTERN [ARGUMENT ...]
    local out
    out=$("$programs/sample_$1" "${@:3}" 2>&1) || { echo "samples: $1 failed: $out"; exit 1; }
    grep -qE "$2" <<<"$out" || { echo "samples: $1 does not say '$2': $out"; exit 1; }
}
for name in service device desktop; do
    [ "$(wc -l <"$folder/$name.c")" -le 100 ] || { echo "samples: $name.c has more than 100 lines"; exit 1; }
done
says service "right at the customer's: [56][0-9] % before, (9[0-9]|100) % after"
says device 'right about (9[0-9]|100) %'
says desktop 'done: 800 steps, right about (9[0-9]|100) %'
set +e
out=$("$programs/sample_device" 100 2>&1)
code=$?
set -e
[[ $code = 6 && $out == *"host.memory_limit"*"100 KiB"* ]] || { echo "samples: device in 100 KiB: $code $out"; exit 1; }
echo "samples: what they learned is right"
