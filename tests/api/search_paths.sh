#!/usr/bin/env bash
# Where programs and libraries look for the libraries they need: no ELF file has an empty or relative element in its
# search path, which would be the folder that a command happens to be started in.
#   search_paths.sh FOLDER...
set -euo pipefail
files=0 faults=0
while IFS= read -r -d '' file; do
    [ "$(head -c 4 "$file" | tr -d '\0')" = $'\x7fELF' ] || continue
    files=$((files + 1))
    while IFS= read -r path; do
        while IFS= read -r -d : element; do
            case $element in
            /* | '$ORIGIN' | '$ORIGIN/'*) ;;
            *)
                echo "$file: '$element' in the search path '$path' depends on the current folder"
                faults=$((faults + 1))
                ;;
            esac
        done <<<"$path:"
    done < <(readelf -dW "$file" | sed -nE 's/.*\((RPATH|RUNPATH)\) .*\[(.*)\]$/\2/p')
    while IFS= read -r needed; do
        case $needed in
        /*) ;;
        */*)
            echo "$file: needs '$needed', whose place depends on the current folder"
            faults=$((faults + 1))
            ;;
        esac
    done < <(readelf -dW "$file" | sed -nE 's/.*\(NEEDED\) .*\[(.*)\]$/\1/p')
done < <(find "$@" -type f \( -perm -u+x -o -name '*.so*' \) -print0)
[ "$files" -gt 0 ] || { echo "search_paths: no ELF file under $*"; exit 1; }
[ "$faults" -eq 0 ] || exit 1
echo "search_paths: $files files"
