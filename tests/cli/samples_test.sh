# samples/*/expected_output.txt of small nets is what the commands in it print, without times and threads. Every YAML of
# samples/ passes `check`.
. "$(dirname "$0")/support.sh"
ln -s "$SAMPLES" samples

plain() { # lines as they are compared
    sed -E "s|$work/||g; s/, [0-9]+ threads?( each)?(,|;|\$)/\\2/; s/  [0-9.,]+ samples\/s .*//; s/  +/  /g; s/ +\$//"
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

try toy
try toy_mp
try tutorials
try table
try series
for file in samples/*/*.yaml; do code 0 "$tandem" check "$file"; done
