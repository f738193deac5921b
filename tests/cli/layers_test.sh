# tools/check_layers in a small tree: what the table allows passes, and every form of a forbidden include is named.
#   layers_test.sh SOURCE PYTHON
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{tools,runtime/base,runtime/graph,modes,config,samples,ops/relu,tests/ops}
cp "$1/tools/check_layers" "$work/tools/"
cd "$work"
touch runtime/base/base.h runtime/graph/graph.h ops/ops.h tests/ops/{op_case,op_driver}.h ops/losses.def
failures=0

verdict() { # WANTED FILE TEXT
    local code=0
    printf "$3\n" >"$2"
    "$python" -B tools/check_layers >said || code=$?
    rm "$2"
    [ $code = "$1" ] && { [ $code = 0 ] || grep -q "^$2:" said; } && return
    failures=$((failures + 1))
    echo "FAILED: status $code, wanted $1, for $2 with $3"
}

python=$2
for text in '#include "runtime/base/base.h"' '#include <tandem/tandem.h>\n#include <stdio.h>' '// #include "ops/ops.h"' \
    '/*\n#include "ops/ops.h"\n*/' 'const char *text = "/*";\n#include "../base/base.h"'; do
    verdict 0 runtime/graph/allowed.c "$text"
done
verdict 0 ops/relu/relu_cases.h '#include "tests/ops/op_case.h"'
verdict 1 ops/relu/relu_cases.h '#include "tests/ops/op_driver.h"'
verdict 1 ops/relu/relu.c '#include "tests/ops/op_case.h"'
for text in '#include "ops/ops.h"' '#include <ops/ops.h>' '#include"ops/ops.h"' ' \t#\tinclude\t"ops/ops.h"' '# include "ops/ops.h"' \
    '#/* why */include "ops/ops.h"' '/* why */ #include "ops/ops.h"' '#\\\n include "ops/ops.h"' '#include_next "ops/ops.h"' \
    '%%:include "ops/ops.h"' '#include "../../ops/ops.h"' '#include "./../../ops/../ops/ops.h"' \
    '#define HEADER "ops/ops.h"\n#include HEADER' 'const char *text = "/*";\n#include "ops/ops.h"'; do
    verdict 1 runtime/graph/forbidden.c "$text"
done
for file in forbidden.cu forbidden.cpp forbidden.inc.c forbidden.def forbidden.h; do
    verdict 1 runtime/graph/$file '#include "ops/ops.h"'
done
verdict 0 tests/ops/any.c '#include "ops/ops.h"'
verdict 0 config/names.c '#include "ops/losses.def"'
verdict 1 config/names.c '#include "ops/ops.h"'
mkdir runtime/base/text runtime/base/system
printf '#include "runtime/base/system/file.h"\n#include "runtime/base/base.h"\n' >runtime/base/text/text.h
touch runtime/base/system/file.h
verdict 0 runtime/base/inner.c '#include "runtime/base/text/text.h"'
printf '#include "runtime/base/text/words.h"\n' >runtime/base/system/file.h
touch runtime/base/text/words.h
if "$python" -B tools/check_layers >said || ! grep -q "^sub-rooms include each other: " said; then
    failures=$((failures + 1))
    echo "FAILED: two folders of a room that include each other are not named"
fi
rm -r runtime/base/{text,system}
sed -i 's/^    "base": set(),/    "base": {"graph"},/' tools/check_layers
if "$python" -B tools/check_layers >said || ! grep -q "^folders include each other: " said; then
    failures=$((failures + 1))
    echo "FAILED: a cycle of folders is not named"
fi
[ $failures = 0 ] && echo "ok     check_layers"
