# A terminal that changes its width under the bar: no stale line is left, and no line above is lost. A narrow one breaks
# lines between words, and shows less beside the bar.
. "$(dirname "$0")/support.sh"
toy
command -v python3 >/dev/null || { echo "skipped: python3 is not here (package python3)"; exit 77; }
for kind in fold cut; do
    code 0 python3 "$here/terminal.py" $kind "$tandem" train toy.yaml run.dir=null train.steps=20000000 'eval.every=3000 steps'
done
shown() { # COLUMNS COMMAND...: what it writes to a terminal of that width
    NO_COLOR=1 python3 - "$@" <<'PY' >"$out"
import fcntl, os, pty, struct, sys, termios
width, command = int(sys.argv[1]), sys.argv[2:]
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    os.execv(command[0], command)
data = b""
while True:
    try:
        chunk = os.read(fd, 65536)
    except OSError:
        break
    data += chunk
sys.stdout.write(data.decode().replace("\r\n", "\n"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PY
}
for width in 60 80; do
    for verb in --help "train --help" "ckpt --help" "bench --help" explain "explain parallel.ddp" \
        "explain parallel.ddp.average" "explain layers"; do
        shown $width "$tandem" $verb || fail "$verb in $width columns"
        long=$(grep -vE '^  (tandem|torchrun) |^usage: ' "$out" | awk "length > $width")
        same "$long" "" "lines of $verb beyond column $width"
    done
done
shown 60 "$tandem" train --help
has "$out" "                             an earlier run (train.steps)"
for width in 22 26 30 34 40; do # a bracket that finds no room is left out, never cut
    shown $width "$tandem" train toy.yaml run.dir=null || fail "train in $width columns"
    grep -qE '%\|#*\| 40/40( \[[^]]*\])?[^] 0-9:<]' "$out" || fail "the bar is cut in $width columns"
done
for width in 50 60 80 120; do
    shown $width "$tandem" train toy.yaml run.dir=null || fail "train in $width columns"
    grep -qE '%\|#{10,}\| 40/40 \[[^]]*\]' "$out" || fail "no bar in $width columns"
done
