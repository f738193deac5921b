# compare: equal bits in every mode, the file it writes, and what it says when something is in the way.
. "$(dirname "$0")/support.sh"
toy

code 0 "$tandem" compare toy.yaml --steps 12 --out c
has "$out" "equal bits"
has "$out" "speed-up over one device"
has "$out" "params_xxh3"
for key in modes mode devices params_xxh3 final_loss samples_per_s ms peak_memory_bytes max_loss_diff max_param_diff \
    first_differing_step equal_bits; do
    has c/compare.json "\"$key\""
done
same "$(json c/compare.json equal_bits)" true equal_bits
same "$(json c/compare.json first_differing_step)" null first_differing_step
has c/report.html "<svg"
same "$(grep -c '"kind":"train"' c/dp/metrics.jsonl)" 12 "every step is kept"
code 2 "$tandem" compare toy.yaml --steps 12 --out c
has "$err" "holds a run already"

code 0 "$tandem" compare toy.yaml --modes single,dp,ddp --steps 6 --out d --tolerance loss=1e-6,params=1e-6
has "$out" "single"
[ -e d/one-device ] && fail "a run on one device was made twice"
code 2 "$tandem" compare toy.yaml --modes dp,tp
code 2 "$tandem" compare toy.yaml --tolerance loss=small
code 3 "$tandem" compare toy.yaml optimizer.lr=fast
code 9 "$tandem" compare toy.yaml --steps 20 optimizer.lr=1e6 optimizer.type=sgd --out e
has "$err" "kept in e/dp"
finish
