# A terminal that changes its width under the bar: no stale line is left, and no line above is lost.
. "$(dirname "$0")/support.sh"
toy
command -v python3 >/dev/null || { echo "skipped: python3 is not here (package python3)"; exit 77; }
for kind in fold cut; do
    code 0 python3 "$here/terminal.py" $kind "$tandem" train toy.yaml run.dir=null train.steps=20000000 'eval.every=3000 steps'
done
finish
