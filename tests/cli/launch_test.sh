# `tandem launch`: ranks on several hosts over ssh, and on this one. ssh is a script that does what ssh does with its
# arguments; the hosts are all this machine.
. "$(dirname "$0")/support.sh"
toy
port=$((20000 + $$ % 10000))
program=$(readlink -f "$tandem")

# ranks of this host, as many as torchrun's flag says
code 0 "$tandem" train toy.yaml --mode ddp --run-dir one2
code 0 "$tandem" launch toy.yaml --mode ddp --nproc-per-node 2 'parallel.device_ids=[0]' --run-dir alone2
same "$(json alone2/summary.json params_xxh3)" "$(json one2/summary.json params_xxh3)" "launch --nproc-per-node and train"
code 2 "$tandem" launch toy.yaml --mode ddp --nproc-per-node 0
has "$err" "whole number of at least 1"
code 2 "$tandem" launch toy.yaml --mode ddp
has "$err" "nothing says where the ranks run: write \`--hosts a:2,b:2\`"

# what is no list of hosts
refuse() { # HOSTS MESSAGE
    code 2 "$tandem" launch toy.yaml --mode ddp --hosts "$1"
    has "$err" "$2"
}
for hosts in "" a, -oProxyCommand=x 'a b' 'a;b' ::1 '[::1' @a a@; do refuse "$hosts" "is no host; write name, user@name"; done
for hosts in a:0 a:-1 a:x a: 'a:1:2' '[::1]:0' a:9999; do refuse "$hosts" "the number of ranks of"; done
refuse a:1,b:1,A:2 "\`--hosts\` has \`A\` twice; write \`A:2\`"
refuse localhost:1,b:1 "b cannot reach rank 0 at \`localhost\`"
code 2 "$tandem" launch toy.yaml --mode ddp --hosts a:1 --nnodes 2
has "$err" "leave out \`--nnodes\`"
code 2 "$tandem" launch toy.yaml --hosts a:1
has "$err" "starts the ranks of mode ddp, but the job has mode single"
code 2 "$tandem" launch toy.yaml --nproc-per-node 2 --ssh ssh
has "$err" "are for \`--hosts\`, which is missing"
code 3 "$tandem" launch toy.yaml --hosts a:1 loss=nonsense
code 2 "$tandem" --hosted
has "$err" "standard input has no orders"

[ -e "$TANDEM_MODULE_PATH/libtandem-gloo.so" ] || exit 0 # what follows is between hosts

cat >ssh <<'SH'
#!/bin/sh
# as ssh: options, a host, and words that a shell on that host reads, in another folder
while :; do
    case $1 in -o | -p) shift 2 ;; -*) shift ;; *) break ;; esac
done
host=$1
shift
[ "$host" != nowhere ] || { echo "ssh: cannot reach $host" >&2; exit 255; }
[ "$host" != refuses ] || { echo "me@$host: Permission denied (publickey)." >&2; exit 255; }
[ "$host" != closed ] || { echo "ssh: connect to host $host port 22: Connection refused" >&2; exit 255; }
[ "$host" != other ] || exit 0
[ "$host" != old ] || { echo "tandem hosted 0.0.1" >&2; sleep 1; exit 2; }
[ "$host" != dies ] || { echo "tandem hosted $VERSION" >&2; exit 255; }
[ "$host" != never ] || exec cat >/dev/null
cd / && exec sh -c "$*"
SH
chmod +x ssh
VERSION=$("$tandem" --version)
export VERSION=${VERSION#tandem }
flags=(toy.yaml --ssh "'$work/ssh' -p 22" --master-addr 127.0.0.1 --master-port "$port" --mode ddp)
launch() { # HOSTS ARGUMENT...
    timeout 120 "$tandem" launch --hosts "$1" "${flags[@]}" "${@:2}"
}
# Processes of the job: they are this program, and in this folder.
processes() {
    find /proc -maxdepth 2 -path '/proc/[0-9]*/exe' -lname "$program" -printf '%h/cwd\n' 2>/dev/null |
        xargs -r -I{} find {} -maxdepth 0 -lname "$work" 2>/dev/null
}
nobody() { [ -z "$(processes)" ]; }
joining() { [ "$(processes | wc -l)" -ge 3 ]; } # launching, host a's, and its rank
stepping() { [ -e "$1/checkpoints/latest" ]; }

# equal bits, on hosts with one rank, two, and unlike numbers; words of the command line that a shell would split
code 0 launch a:1,b:1 --run-dir "it's \"two\" \$HOME" 'name=$(exit) it'\''s; "a" b'
same "$(json "it's \"two\" \$HOME/summary.json" params_xxh3)" "$(json one2/summary.json params_xxh3)" "two hosts and one"
has "$err" "tandem: ranks: 1 on a, 1 on b; they meet at 127.0.0.1:$port"
has "$err" "\$(exit) it's; \"a\" b"
has "$err" "[b] tandem: host 1 of 2, rank 1 of 2: finished"
has "$err" "gradients over gloo (several hosts)"
has "$err" "resume   tandem launch --hosts a:1,b:1 toy.yaml --ssh"
has "$out" "params_xxh3"
code 0 "$tandem" train toy.yaml --mode ddp 'parallel.device_ids=[0, 1, 2]' --run-dir one3
code 0 launch localhost:1,b --nproc-per-node 2 --run-dir two3
same "$(json two3/summary.json params_xxh3)" "$(json one3/summary.json params_xxh3)" "hosts with one rank and two, and one host"

# compare: ddp on these hosts, and the other modes here with as many devices
code 0 "$tandem" compare "${flags[@]:0:7}" --hosts localhost:1,b:1 --modes single,ddp --steps 4 --out compared
has "$out" "equal bits"
has compared/ddp/config.resolved.yaml "device_ids"
code 2 "$tandem" compare toy.yaml --hosts b:1,localhost:1
has "$err" "must begin with this machine"
code 2 "$tandem" compare toy.yaml --hosts localhost,b:1
has "$err" "write \`localhost:2\` for two"
code 2 "$tandem" compare toy.yaml --modes single,dp --hosts localhost:1
has "$err" "not one of \`--modes\`"
code 2 "$tandem" compare toy.yaml --ssh ssh
has "$err" "\`--ssh\` is for \`--hosts\`"

# a host that cannot be reached, or has no tandem: the others end, and it is named
code 7 launch a:1,nowhere:1 --run-dir none
has "$err" "[nowhere] ssh: cannot reach nowhere"
has "$err" "host nowhere: ssh could not connect, and said so above"
code 7 launch a:1,refuses:1 --run-dir none
has "$err" "host refuses: ssh could not connect: it does not let this user in; give it a key with ssh-copy-id"
code 7 launch a:1,closed:1 --run-dir none
has "$err" "host closed: ssh could not connect: nothing listens at its port; start sshd there"
code 2 launch a:1,b:1 --remote-tandem "/no such/tandem" --run-dir none
has "$err" ": tandem (/no such/tandem) was not found there"
code 2 launch a:1,b:1 --remote-tandem "$work/toy.yaml" --run-dir none
has "$err" "/toy.yaml cannot be run there, see above: it must be tandem $VERSION for that machine"
code 2 launch a:1,other:1 --run-dir none # rank 0 would wait for the timeout
has "$err" "there is not tandem $VERSION: it ended with code 0 and did not greet; install the same version there"
code 2 launch a:1,old:1 --run-dir none
has "$err" "there is tandem 0.0.1, and this is $VERSION; install the same version on all hosts"
code 7 launch a:1,dies:1 --run-dir none
has "$err" "host dies: tandem had begun there, and then the connection was lost, or tandem was killed"
hasnt "$err" "tandem hosted"
nobody || fail "processes left over: $(processes)"

# a rank that fails: its host and its code
code 9 launch a:1,b:1 --run-dir bad optimizer.type=sgd optimizer.lr=1e6
has "$err" "failed first, with code 9"
nobody || fail "processes left over: $(processes)"

long() { # HOSTS RUN-DIR
    "$tandem" launch --hosts "$1" "${flags[@]}" train.steps=2000000 "checkpoint.every=100 steps" --run-dir "$2" >"$out" 2>"$err" </dev/null &
    pid=$!
}
ends_with() { # CODE
    local got=0
    wait "$pid" || got=$?
    [ "$got" -eq "$1" ] || { fail "status $got, wanted $1"; cat "$err"; }
    eventually nobody
}

# a signal to the launching process stops all, with a checkpoint; the job goes on from it
long a:1,b:1 stopped
eventually stepping stopped
kill -USR1 "$pid"
ends_with 75
has "$out" "to continue:"
code 0 "$tandem" ckpt verify stopped
code 0 launch a:1,b:1 --run-dir stopped --steps $(($(json stopped/summary.json step) + 3))

# nothing outlives the launching process, not even ranks that wait for others to come
long a:1,b:1 killed
eventually stepping killed
kill -KILL "$pid"
ends_with 137
long a:1,never:1 waiting
eventually joining
kill -KILL "$pid"
ends_with 137

# the second signal ends it at once
long a:1,never:1 twice
eventually joining
kill -TERM "$pid"
sleep 0.5
kill -TERM "$pid"
ends_with 143
