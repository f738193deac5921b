#!/usr/bin/env bash
# cmake --install, then the prefix moves elsewhere, and a stranger builds samples/embed_c against it: by pkg-config, by
# find_package, over the shared and the static library. Its output is the sample's expected output. A project that adds
# the sources instead gets the library and none of its flags.
#   install.sh CMAKE SOURCE-FOLDER BUILD-FOLDER LIBRARY-FOLDER-NAME BINARY-FOLDER-NAME
set -euo pipefail
cmake=$1 source=$2 build=$3 lib=$4 bin=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sample=$source/samples/embed_c
unset TANDEM_MODULE_PATH LD_LIBRARY_PATH

# Losses may differ by the processor's kernels: numbers behind "loss" are compared to 0.02, all other words exactly.
same_output() {
    awk 'function off(a, b) { return a > b ? a - b : b - a }
         NR == FNR { line[FNR] = $0; lines = FNR; next }
         { n = split(line[FNR], want); if (n != NF) exit 1
           for (i = 1; i <= NF; i++) if ($i != want[i] && !($(i - 1) == "loss" && off($i, want[i]) <= 0.02)) exit 1
           got = FNR }
         END { if (got != lines) exit 1 }' "$sample/expected_output.txt" "$1" && return
    echo "install: $1 is"
    cat "$1"
    exit 1
}

"$cmake" --install "$build" --prefix "$work/first" >"$work/log" || { cat "$work/log"; exit 1; }
DESTDIR="$work/staged" "$cmake" --install "$build" --prefix /usr >"$work/log" || { cat "$work/log"; exit 1; }
bash "$(dirname "$0")/search_paths.sh" "$work/first" "$work/staged"
mv "$work/first" "$work/moved"
prefix=$work/moved

"$prefix/$bin/tandem" --version >/dev/null
for page in man/man1/tandem.1 man/man5/tandem.yaml.5 bash-completion/completions/tandem tandem/tandem.schema.json \
    doc/tandem/{LICENSE,README.md,samples/embed_c/embed.c,runtime/docs/installing.md}; do
    [ -s "$prefix/share/$page" ] || { echo "install: share/$page is not there"; exit 1; }
done
"$prefix/$bin/tandem" schema | cmp - "$prefix/share/tandem/tandem.schema.json"
python3 - "$prefix/share/doc/tandem/tandem.spdx.json" <<'END'
import json, sys
bill = json.load(open(sys.argv[1]))
ids = {part["SPDXID"] for part in bill["packages"]} | {"SPDXRef-DOCUMENT"}
assert len(ids) == len(bill["packages"]) + 1 and all(part["licenseDeclared"] for part in bill["packages"]), ids
assert "NOASSERTION" not in [part["versionInfo"] for part in bill["packages"]], bill["packages"]
for line in bill["relationships"]:
    assert {line["spdxElementId"], line["relatedSpdxElement"]} <= ids, line
for part in "tandem", "libyaml", "xxHash", "libmd", "jansson", "zlib":
    assert "SPDXRef-" + part in ids, part
END
python3 "$source/tests/api/installed_pages.py" "$prefix/share/doc/tandem" "$source"
"$prefix/$bin/tandem" check "$source/samples/toy/toy.yaml" >/dev/null
for module in "$build"/lib/tandem/*.so; do
    [ -e "$module" ] || continue
    name=$(basename "$module")
    "$prefix/$bin/tandem" doctor >"$work/doctor" || true # this machine's faults are not the point
    grep -qF "$prefix/$lib/tandem/$name" "$work/doctor" ||
        { echo "install: $name is not found beside the library"; cat "$work/doctor"; exit 1; }
done
! grep -rIlF "$work/first" "$prefix" || { echo "install: files name the prefix"; exit 1; }
if grep -q '^CMAKE_BUILD_TYPE:.*=Release$' "$build/CMakeCache.txt"; then # debuggers want the folder
    ! grep -rlF "$source" "$prefix" || { echo "install: these files name the folder of the sources"; exit 1; }
fi

# A part alone: what a machine that only runs programs needs.
"$cmake" --install "$build" --prefix "$work/part" --component runtime >"$work/log" || { cat "$work/log"; exit 1; }
others=$(find "$work/part" -mindepth 1 ! -type d ! -name 'libtandem.so.*' ! -name 'libtandem-*.so' ! -path '*/share/doc/*')
[ -z "$others" ] || { echo "install: the part runtime has $others"; exit 1; }

export PKG_CONFIG_PATH=$prefix/$lib/pkgconfig
${CC:-cc} -std=c11 -pedantic -Wall -Wextra -Werror "$sample/embed.c" $(pkg-config --cflags --libs tandem) \
    -Wl,-rpath,"$(pkg-config --variable=libdir tandem)" -o "$work/embed"
"$work/embed" >"$work/by_pkg_config"
same_output "$work/by_pkg_config"
${CC:-cc} "$sample/embed.c" $(pkg-config --cflags tandem) "$prefix/$lib/libtandem.a" \
    $(pkg-config --libs-only-l --static tandem | sed 's/-ltandem//') -pthread -o "$work/embed_static"
(cd / && "$work/embed_static") >"$work/static_by_pkg_config"
same_output "$work/static_by_pkg_config"

# A layer of its own needs the headers alone.
mkdir "$work/ops"
${CC:-cc} -std=c11 -pedantic -Wall -Wextra -Werror -ffp-contract=off -fPIC -shared "$source/samples/own_op/swish.c" \
    $(pkg-config --cflags tandem) -o "$work/ops/libswish.so" -lm
TANDEM_OP_PATH=$work/ops "$prefix/$bin/tandem" train "$source/samples/own_op/swish.yaml" --quiet --steps 2 \
    --run-dir "$work/own_op" >/dev/null

"$cmake" -G Ninja -S "$source/tests/api/consumer" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$prefix" -DEMBED="$sample" \
    -DCMAKE_BUILD_TYPE=Release >"$work/log" && "$cmake" --build "$work/consumer" >>"$work/log" ||
    { cat "$work/log"; exit 1; }
for form in tandem tandem_static; do
    "$work/consumer/embed_$form" >"$work/$form"
    same_output "$work/$form"
done
bash "$(dirname "$0")/search_paths.sh" "$work/embed" "$work/consumer"
for module in "$prefix/$lib"/tandem/*-dnnl.so; do # the static program has the modules beside it, and finds them there
    [ -e "$module" ] || continue
    LD_DEBUG=files "$work/consumer/embed_tandem_static" 2>&1 | grep -F "$work/consumer/tandem/libtandem-dnnl.so" >/dev/null ||
        { echo "install: a static program does not find oneDNN's kernels"; exit 1; }
done

# The sources inside another project: the library alone is built, and the program gets only the public headers' folder.
"$cmake" -G Ninja -S "$source/tests/api/consumer" -B "$work/nested" -DTANDEM_SOURCE="$source" -DEMBED="$sample" \
    -DCMAKE_EXPORT_COMPILE_COMMANDS=ON $(printf -- '-DTDM_WITH_%s=OFF ' DNNL CUDA NCCL GLOO MPI IMAGE) >"$work/log" 2>&1 ||
    { cat "$work/log"; exit 1; }
! grep JANSSON_ "$work/nested/CMakeCache.txt" || { echo "install: the library alone asks for jansson"; exit 1; }
python3 - "$work/nested/compile_commands.json" "$source" <<'END'
import json, sys
commands = json.load(open(sys.argv[1]))
assert any("/runtime/" in line["file"] for line in commands)
wrong = [line["file"] for line in commands if "/tests/" in line["file"] or "/tools/" in line["file"]]
assert not wrong, wrong
for line in commands:
    if line["file"].endswith("/embed.c"):
        words = [word for word in line["command"].split() if word[:2] in ("-I", "-D", "-W", "-f")]
        assert words == ["-I" + sys.argv[2] + "/runtime/include"], words
END
echo "install: moved, found by pkg-config and by CMake, shared and static; inside another project"
