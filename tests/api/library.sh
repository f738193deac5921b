#!/usr/bin/env bash
# What the shared library shows to others: exactly the functions of the public headers, few needs, less than 2 MB.
#   library.sh SOURCE-FOLDER LIBRARY-FOLDER
set -euo pipefail
source=$1 libraries=$2
library=$libraries/libtandem.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
complain() { echo "library: $*"; bad=1; }

nm -D --defined-only "$library" | awk '$2 != "A" {sub(/@.*/, "", $3); print $3}' | sort >"$work/exported"
sed -nE 's/.*TDM_API.*\b(tdm_[a-z0-9_]+)\(.*/\1/p' "$source"/runtime/include/tandem/*.h | sort >"$work/declared"
diff "$work/declared" "$work/exported" >"$work/difference" ||
    complain "declared (<) and exported (>) functions differ:
$(cat "$work/difference")"
! grep -v '^tdm_[a-z]' "$work/exported" || complain "exports other names than tdm_..."

awk -f "$source/tests/api/make_calls.awk" "$source"/runtime/include/tandem/*.h | sed -nE 's/^    \{"(tdm_[a-z0-9_]+)".*/\1/p' |
    sort >"$work/called"
diff "$work/declared" "$work/called" >"$work/difference" ||
    complain "declared (<) and called (>) by tests/api/calls_test.c differ:
$(cat "$work/difference")"

# A public function that the test of misuse does not call is one that nobody has called wrongly yet.
while read -r name; do
    grep -q "\b$name(" "$source"/tests/api/{misuse,misuse_comm,inputs,kept,onnx,own_loop,own_ops}_test.c ||
        complain "none of misuse, misuse_comm, inputs, kept, onnx, own_loop and own_ops_test.c in tests/api calls $name"
done <"$work/declared"

for module in "$libraries"/tandem/*.so; do
    [ -e "$module" ] || continue
    # The other name is a function of libgloo's that the module replaces (gloo_address.cpp).
    names=$(nm -D --defined-only "$module" | awk '{print $3}' | grep -v '^_ZN4gloo9transport3tcp7Address12fromPeerNameEi$')
    [ "$names" = tdm_module_v1 ] || complain "$module exports: $names"
    ! readelf -d "$module" | grep -q 'NEEDED.*libtandem' || complain "$module links libtandem"
done

for needed in $(readelf -d "$library" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p'); do
    case $needed in
    libc.so.* | libm.so.* | libyaml-0.so.* | libxxhash.so.* | libmd.so.* | ld-linux*) ;;
    libpthread.so.* | libdl.so.*) ;; # of their own before glibc 2.34
    *) complain "needs $needed at run time" ;;
    esac
done

cp "$library" "$work/stripped" && strip "$work/stripped"
bytes=$(stat -c %s "$work/stripped")
[ "$bytes" -lt 2000000 ] || complain "has $bytes bytes, wanted less than 2000000"
[ $bad -eq 0 ] && echo "library: $(wc -l <"$work/exported") functions, $bytes bytes"
exit $bad
