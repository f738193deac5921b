# samples/*/expected_output.txt of small nets is what the commands in it print, without times and threads. Every YAML of
# samples/ passes `check`.
. "$(dirname "$0")/support.sh"
ln -s "$SAMPLES" samples

plain() { # lines as they are compared; the last digits of a probability differ between processors
    sed -E "s|$work/||g; s/\<([01]\.[0-9]{4})[0-9]{2}\>/\1/g; s/, [0-9]+ threads?( each)?(,|;|\$)/\\2/; s/  [0-9.,]+ samples\/s .*//; s/  +/  /g; s/ +\$//"
}

try() { # FOLDER
    local text=samples/$1/expected_output.txt line command
    [ -s "$text" ] || { fail "$text is not there"; return; }
    while IFS= read -r line; do
        case $line in
        '$ '*)
            command=${line#'$ '}
            code 0 bash -c "tandem() { \"\$TANDEM\" \"\$@\"; }; $command"
            cat "$out" "$err" | plain >got
            ;;
        '' | '#'*) ;;
        *) plain <<<"$line" | grep -qxFf - got || fail "$1: not printed: $line" ;;
        esac
    done <"$text"
}

# DataParallel's outputs are the same on any number of devices; with 8 the last batch has fewer rows than devices.
last() { # NAME ARGUMENT...
    code 0 "$tandem" train samples/tutorials/data_parallel.yaml --quiet --run-dir "$@"
    sed -nE 's/.*"step":4,.*"epoch":0,"loss":([0-9.]{6}).*"samples":([0-9]+).*/\1 of \2/p' "$1/metrics.jsonl"
}
one=$(last on1 'parallel.device_ids=[0]')
same "$(last on2)" "$one" "the last loss on 2 devices"
same "$(last on3 'parallel.device_ids=[0, 1, 2]')" "$one" "the last loss on 3 devices"
one=$(last wide1 'parallel.device_ids=[0]' 'train.batch={global: 32}')
same "$(last wide8 'parallel.device_ids=[0, 1, 2, 3, 4, 5, 6, 7]' 'train.batch={global: 32}')" "$one" "the last loss on 8 devices"

try toy
try toy_mp
try tutorials
try table
try series
try inputs
for file in $(grep -l "^tandem: 1" samples/*/*.yaml); do code 0 "$tandem" check "$file"; done
