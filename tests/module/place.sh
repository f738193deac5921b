#!/usr/bin/env bash
# Modules are looked for beside the file that is really mapped: what a program is called by, where it goes and how its
# library was found choose no folder. A program that runs with more rights than its caller relies on that.
#   place.sh STATIC-PROGRAM SHARED-PROGRAM LIBRARY MODULE
set -euo pipefail
unset TANDEM_MODULE_PATH
work=$(cd "$(mktemp -d)" && pwd -P)
trap 'rm -rf "$work"' EXIT
bad=0

# One place with a program, its library and modules of its own, and one that only looks like it.
for at in right wrong; do
    mkdir -p "$work/$at/bin/tandem" "$work/$at/lib/tandem"
    cp "$4" "$work/$at/bin/tandem/libtandem-dnnl.so"
    cp "$4" "$work/$at/lib/tandem/libtandem-dnnl.so"
    cp "$1" "$work/$at/bin/static"
    cp "$2" "$work/$at/bin/shared"
    cp "$3" "$work/$at/lib/$(basename "$3")"
done

# found NAME WANTED COMMAND...: the module that is taken lies under WANTED; "": under neither place.
found() {
    local name=$1 wanted=$2 came
    shift 2
    came=$("$@" | sed -nE 's/^ +dnnl +(usable: .*, |absent.*)//p')
    case $came in
    "${wanted:-$work}"/*) [ -n "$wanted" ] && return ;;
    *) [ -z "$wanted" ] && return ;;
    esac
    echo "place: $name: wanted a module under ${wanted:-neither place}, found '$came'"
    bad=1
}

forged() { (exec -a "$work/wrong/bin/static" "$@"); }
from() { (cd "$1" && shift && "$@"); }
by_path() { (cd "$work/right" && LD_LIBRARY_PATH=lib "$@"); }

found "a name that is another file's" "$work/right/bin" forged "$work/right/bin/static" /
found "a program started by a relative path" "$work/right/bin" from "$work/right" bin/static "$work/wrong"
found "a library found by a relative path" "$work/right/lib" by_path bin/shared "$work/wrong"
found "a program whose file is gone" "" "$work/right/bin/static" / "$work/right/bin/static"
[ $bad -eq 0 ] && echo "place: modules are found beside the files that are mapped"
exit $bad
