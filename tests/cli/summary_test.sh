# What tools/test ends with: the skipped tests with their reasons, then ctest's own count. And what a build by hand builds.
. "$(dirname "$0")/support.sh"
root=$(cd "$here/../.." && pwd)
cat >CTestTestfile.cmake <<'CMAKE'
add_test(good "true")
add_test(early "bash" "-c" "echo 'skipped: no GPU here'; exit 77")
add_test(late "bash" "-c" "echo one; echo; echo '  the toolkit is missing'; echo; exit 77")
add_test(silent "bash" "-c" "exit 77")
set_tests_properties(early late silent PROPERTIES SKIP_RETURN_CODE 77)
CMAKE
code 0 "$CTEST" --test-dir . --output-log log
code 0 "$root/tools/test_summary" . log
cat >wanted <<'TEXT'
skipped, and why:
  early: no GPU here
  late: the toolkit is missing
  silent: no reason given
TEXT
head -4 "$out" | diff -u wanted - || fail "the reasons are other ones"
same "$(tail -n +5 "$out")" "$(grep 'tests passed' log)" "the last line"

# a failed test keeps its place in the count
echo 'add_test(bad "false")' >>CTestTestfile.cmake
code 8 "$CTEST" --test-dir . --output-log log
code 0 "$root/tools/test_summary" . log
has "$out" "1 tests failed out of 5"

# `cmake --build` without a target makes the command and no test
code 0 "$CMAKE" --build "$BUILD" -- -t query all
has "$out" "tools/all"
hasnt "$out" "tests/all"
code 0 "$CMAKE" --build "$BUILD" -- -t query tests/all
has "$out" "tests/unit/all"
