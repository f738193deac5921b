"""Installed pages: links lead to what is installed, and a file that only the source has is named in the line below the
heading, by its folder or its name.
   installed_pages.py FOLDER-OF-PAGES SOURCE-FOLDER"""
import pathlib
import re
import sys

folder, source = (pathlib.Path(a) for a in sys.argv[1:])
rooms = ("runtime", "modes", "ops", "config", "tools", "tests")
files = {str(p.relative_to(source)) for room in rooms for p in (source / room).rglob("*")}
installed = {p.name for part in ("runtime/include", "samples") for p in (source / part).rglob("*")}
names = {f.rsplit("/", 1)[-1] for f in files if not f.endswith(".md")} - installed
bad = []
for page in sorted(folder.rglob("*.md")):
    text = page.read_text()
    where, note = page.relative_to(folder), text.split("\n")[2]
    for link in re.findall(r"\]\((?!https?:)([^)#\s]+)", text):
        if not (page.parent / link).exists():
            bad.append(f"{where}: the link {link} leads nowhere")
    told = re.findall(r"`([^`]+)`", note) if "source alone" in note or "源码" in note else []
    for name in set(re.findall(r"`([\w./-]+)`", text)) - set(told):
        is_absent = name.rstrip("/") in files and not (folder / name).exists() or \
            name in names and re.search(r"\.(c|h|cu|py|sh|cmake)$", name)
        if is_absent and not any(name == t or name.startswith(t) for t in told):
            bad.append(f"{where}: {name} is not installed, and the line below the heading does not say so")
for line in bad[:20]:
    print(line)
sys.exit(bool(bad))
