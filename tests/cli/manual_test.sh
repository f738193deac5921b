# Man pages and completion say what the tables say: every verb with its flags, every key.
. "$(dirname "$0")/support.sh"

code 0 "$tandem" manual tandem.1 -o tandem.1
code 0 "$tandem" manual tandem.yaml.5 -o tandem.yaml.5
code 0 "$tandem" manual bash -o completion
code 2 "$tandem" manual tandem.7
has "$err" "the pages are tandem.1"
code 0 "$tandem" --help
hasnt "$out" "manual "
verbs=$(sed -n 's/^  \([a-z]*\) .*/\1/p' "$out" | grep -v '^tandem$')
for verb in $verbs; do
    has tandem.1 ".Ss $verb"
    for flag in $("$tandem" "$verb" --help | sed -n 's/^  --\([a-z-]*\).*/\1/p'); do
        grep -qF -- ".It \"\\-\\-${flag//-/\\-}" tandem.1 || fail "tandem.1 has no --$flag of $verb"
    done
done
sections=$("$tandem" explain | sed -n '/^sections/,$s/^  \([a-z]*\) .*/\1/p')
for section in $sections data.train data.eval data.transform train.batch parallel.dp parallel.ddp; do
    for key in $("$tandem" explain "$section" | sed -n '/^keys/,/^$/s/^  \([a-z_]*\) .*/\1/p'); do
        case $section.$key in data.transform.*) continue ;; esac # a list of steps
        has tandem.yaml.5 "\"$section.$key\""
        case $section.$key in model.layers) continue ;; esac
        grep -qE "(^|[ '])$section\.$key= " completion || fail "completion has no $section.$key"
    done
done
for kind in conv2d linear relu; do grep -q "^  $kind " tandem.yaml.5 || fail "tandem.yaml.5 has no layer $kind"; done
if command -v mandoc >/dev/null; then
    for page in tandem.1 tandem.yaml.5; do
        code 0 mandoc -Tlint -W warning "$page"
        same "$(cat "$out")" "" "mandoc's words about $page"
    done
fi

# bash cuts words at `=`
completed() { # WANTED WORD...
    local wanted=$1
    shift
    (
        mkdir -p empty && cd empty && . ../completion
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        COMPREPLY=()
        _tandem
        echo "${COMPREPLY[*]}"
    ) >completed.txt
    same "$(cat completed.txt)" "$wanted" "completion of '$*'"
}
completed train tandem tr
completed "--mode" tandem train job.yaml --mo
completed "dp ddp" tandem train job.yaml --mode d
completed "dp ddp" tandem train job.yaml --mode = d
completed "optimizer.type=" tandem train job.yaml optimizer.ty
optims=$(sed -n 's/^TDM_OPTIM(\(a[a-z0-9_]*\))$/\1/p' "$(dirname "$0")/../../ops/optims.def")
completed "$(echo $optims)" tandem train job.yaml optimizer.type = a
completed "auto ref fast" tandem train job.yaml parallel.kernels =
completed "true false" tandem train job.yaml data.shuffle =
completed "" tandem train job.yaml optimizer.lr =
completed "optimizer.type" tandem explain optimizer.ty
completed "data.transform" tandem explain data.transf
completed "en zh" tandem init --lang ""
completed "" tandem report runs/a optimizer.t
completed "ls show verify diff convert" tandem ckpt ""
completed "show" tandem ckpt s
completed "check make" tandem data ""
completed "step op all_reduce reduce broadcast all_gather gather scatter reduce_scatter all_to_all data" tandem bench ""
completed "tandem.1 tandem.yaml.5" tandem manual tandem
completed "exit-codes" tandem help exi
completed "export explain" tandem help exp
completed "--rtol" tandem ckpt --r
completed "text json" tandem check job.yaml --format ""
completed "idx cifar10 npy image_folder" tandem data make there --format ""
completed "auto never" tandem train job.yaml --resume ""
completed "" tandem train job.yaml --steps ""
completed "" tandem train job.yaml --run-dir ""
completed "cifar" tandem init --task c

# only files are treated as file names: bash would write `optimizer.type\=`, and `data/` where a folder is named so
treated() { # WANTED WORD...
    local wanted=$1
    shift
    (
        mkdir -p named/data named/zoo && cd named && . ../completion
        complete -p tandem
        compopt() { echo "compopt $*"; }
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        COMPREPLY=()
        _tandem
    ) >treated.txt
    same "$(cat treated.txt)" "complete -F _tandem tandem$wanted" "how words for '$*' are treated"
}
treated "" tandem da
treated $'\ncompopt -o nospace' tandem train job.yaml optimizer.ty
treated $'\ncompopt -o filenames' tandem eval zo
treated $'\ncompopt -o filenames' tandem train job.yaml --run-dir zo
treated $'\ncompopt -o filenames' tandem train job.yaml --resume zo
