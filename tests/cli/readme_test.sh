# The job of both READMEs: dp and ddp end with the same bits, as the pages promise.
. "$(dirname "$0")/support.sh"
readme=$(cd "$(dirname "$0")/../.." && pwd)

for page in README.md README.zh-CN.md; do
    sed -n '/^```yaml/,/^```$/{/^```/!p;/^```$/q}' "$readme/$page" >job.yaml # the first
    code 0 "$tandem" check job.yaml
    code 0 "$tandem" train job.yaml --steps 12 --run-dir ddp --quiet
    code 0 "$tandem" train job.yaml --steps 12 --run-dir dp --quiet --mode dp
    code 0 "$tandem" ckpt diff dp ddp
    rm -r dp ddp
done
