#!/bin/bash
# Open MPI: `./mpirun.sh node-0:2,node-1:2 JOB.yaml [key=value ...]` trains with two ranks on each of two hosts.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2s/^# //p' "$0"; exit 2; }
hosts=$1
shift
# Without --bind-to none each rank would be bound to one core, and its threads would share it.
# -x passes on a variable that is set here; where the secret lies is the same path on all hosts.
exec mpirun --host "$hosts" --bind-to none ${TANDEM_SECRET_FILE:+-x TANDEM_SECRET_FILE} \
    tandem train "$@" --mode ddp
