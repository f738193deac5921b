#!/usr/bin/env python3
"""Checks that pages name only files, functions and members that exist and have lines of prose of at most 120 columns,
that both README list every layer, loss, optimizer, schedule and format of data, and that the page of the dnnl module
says of every layer what runs. Prints what is wrong; exit status 1 if there is something. Names of an example (`lion`,
`huber`, `tsv`, `celu`) and patterns (noun_verb, VERB) are not looked for."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = re.compile(r"lion|huber|tsv|celu|noun|verb|^[_.]", re.I)
# Names of PyTorch, MPI, oneDNN and ssh that occur only on pages.
THEIRS = {"broadcast_object_list", "all_gather_object", "gather_object", "scatter_object_list", "send_object_list",
          "register_comm_hook", "set_epoch", "all_gather_into_tensor", "all_to_all_single", "reduce_scatter_tensor",
          "all_gather_into_tensor_coalesced", "reduce_scatter_tensor_coalesced", "divide_by_initial_world_size",
          "throw_on_early_termination", "demo_basic", "initial_accumulator_value", "MPI_Allreduce", "ONEDNN_MAX_CPU_ISA",
          "known_hosts", "all_reduce_multigpu", "batch_isend_irecv", "input_split_sizes", "output_split_sizes",
          "NCCL_SOCKET_IFNAME"}
ROOMS = ("runtime", "modes", "ops", "config", "tools", "tests", "samples")
SOURCE = re.compile(r"\.(c|h|cu|cpp|def|inc|sh|py|cmake|yaml)$")

paths = [p for room in ROOMS for p in (ROOT / room).rglob("*")] + list(ROOT.glob("*.md"))
files = [str(p.relative_to(ROOT)) for p in sorted(paths) if p.is_file()]
names = {f.rsplit("/", 1)[-1] for f in files}
text = {f: (ROOT / f).read_text(errors="replace") for f in files if re.search(r"\.(c|h|cu|cpp|def|inc|md|txt|cmake)$", f)}
tests = {f"cli_{f.rsplit('/', 1)[-1].removesuffix('_test.sh')}" for f in files if f.endswith("_test.sh")}
words = {w for f in files for w in re.findall(r"\w+", f)} | tests
for f in files:
    if not f.endswith((".md", ".json", ".png", ".npy", ".bin")):
        words |= set(re.findall(r"\w+", (ROOT / f).read_text(errors="replace")))
bad = []


def check_file(where, path):
    if EXAMPLE.search(path.rsplit("/", 1)[-1]):
        return
    if path.rsplit("/", 1)[-1] not in names or ("/" in path and not any(f.endswith(path) for f in files)):
        bad.append(f"{where}: there is no file {path}")


def check_lists(page, heading):
    """The section `heading` of the page names whatever the tables have."""
    section = text[page].split(f"\n## {heading}\n", 1)[-1].split("\n## ", 1)[0]
    listed = set(re.findall(r"[a-z][a-z0-9_]*", section))
    formats = "runtime/include/tandem/sys/formats.def"
    for file in ("ops/ops.def", "ops/losses.def", "ops/optims.def", formats):
        for name in re.findall(r"^TDM_\w+\((?:\w+, )?(\w+)\)", text[file], re.M):
            if name not in listed:
                bad.append(f"{page}: '{heading}' does not list {name} of {file}")
    file = "config/fields/train.c"
    schedules = re.search(r"schedule_names\[\] = \{(.*?)\}", text[file], re.S).group(1)
    for name in re.findall(r'"(\w+)"', schedules):
        if name not in listed:
            bad.append(f"{page}: '{heading}' does not list the schedule {name} of {file}")


def check_kernels(page):
    """The table of kernels says of every layer what runs, and where the module has no kernel of its own."""
    table = text[page].split("\n| kernel | ", 1)[1].split("\n\n", 1)[0]
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", table, re.M)
    what_runs = {name: what for names, what in rows for name in names.split(", ")}
    for name in re.findall(r"^TDM_OP\((\w+)\)", text["ops/ops.def"], re.M):
        has_kernel = f"ops/{name}/{name}_dnnl.c" in text
        if name not in what_runs:
            bad.append(f"{page}: the table of kernels has no row for {name}")
        elif has_kernel == bool(re.match("the built-in kernels|no kernel", what_runs[name])):
            bad.append(f"{page}: the module has {'a' if has_kernel else 'no'} kernel for {name}, the table says otherwise")


def check_lines(file, page):
    """Prose has lines of at most 120 columns, but for tables, code, headings and what cannot be broken."""
    is_code = False
    for number, line in enumerate(page.split("\n"), 1):
        is_code ^= line.lstrip().startswith("```")
        if len(line) <= 120 or is_code or line.startswith("    ") or re.match(r"\s*(```|[|#<>]|\[[^]]+\]: )", line):
            continue
        if len(re.findall(r"(?:`[^`]*`|!?\[[^]]*\]\([^)]*\)|[^\s`])+", re.sub(r"^\s*([-*+]|\d+\.)\s", "", line))) > 1:
            bad.append(f"{file}:{number}: a line of prose has {len(line)} columns, more than 120")


check_lists("README.md", "What is here today")
check_lists("README.zh-CN.md", "目前具备")
check_kernels("runtime/backends/dnnl/README.md")
for file, page in text.items():
    if not file.endswith(".md"):
        continue
    check_lines(file, page)
    for path in re.findall(r"`([\w/.\-]+)`", page):
        if SOURCE.search(path):
            check_file(file, path)
    named = set(re.findall(r"\btdm_{1,2}[a-z0-9_]+\b", page)) | set(re.findall(r"`(\w+_\w+)`", page))
    for name in sorted(named - words - THEIRS):
        if not EXAMPLE.search(name):
            bad.append(f"{file}: nothing is called {name}")
print("\n".join(bad) if bad else f"pages: every file and function that {sum(f.endswith('.md') for f in text)} pages name exists")
sys.exit(bool(bad))
