"""A terminal that is made narrower and wider while a command draws its bar: terminal.py fold|cut COMMAND...

The screen is kept as lines and a cursor. `fold`: a line that is too long for the new width goes on in the next row, as in
most terminals; `cut`: it loses what does not fit, as in xterm. The command is killed in the end: what stands on the screen
then must be the lines that it wrote, and one bar below them."""
import fcntl
import os
import pty
import re
import signal
import struct
import sys
import termios

ESCAPE = re.compile(r"\x1b\[(\??)(\d*)([A-Za-z])")
UNFINISHED = re.compile(r"(\x1b(\[\??\d*)?)?$")
BAR = re.compile(r"\d%\|")


class Screen:
    def __init__(self, width, fold):
        self.width, self.fold, self.wraps = width, fold, True
        self.lines, self.y, self.x = [""], 0, 0

    def resize(self, width):
        self.width = width
        if not self.fold:
            self.lines = [line[:width] for line in self.lines]
            self.x = min(self.x, width - 1)

    def row_start(self):
        return self.x // self.width * self.width

    def new_line(self):
        if len(self.lines[self.y]) > self.row_start() + self.width:
            self.x += self.width
            return
        self.y, self.x = self.y + 1, 0
        if self.y == len(self.lines):
            self.lines.append("")

    def put(self, char):
        last = self.row_start() + self.width - 1
        if not self.fold and self.x >= self.width:
            self.new_line()
        line = self.lines[self.y].ljust(self.x)
        self.lines[self.y] = line[: self.x] + char + line[self.x + 1 :]
        self.x = last if self.x == last and not self.wraps else self.x + 1

    def escape(self, private, number, letter):
        line = self.lines[self.y]
        if letter == "J":
            self.lines[self.y :] = [line[: self.x]]
        elif letter == "K":
            self.lines[self.y] = line[: self.x] + line[self.row_start() + self.width :]
        elif private and number == "7":
            self.wraps = letter == "h"

    def feed(self, text):
        at = 0
        while at < len(text):
            found = ESCAPE.match(text, at)
            if found:
                self.escape(*found.groups())
                at = found.end()
                continue
            if text[at] == "\r":
                self.x = self.row_start()
            elif text[at] == "\n":
                self.new_line()
            else:
                self.put(text[at])
            at += 1


def written(stream):
    """The lines that ended, without what was taken away again before."""
    lines = [re.split(r"\x1b\[J", line)[-1] for line in stream.split("\n")]
    return [ESCAPE.sub("", line).replace("\r", "") for line in lines]


def main():
    fold, command = sys.argv[1] == "fold", sys.argv[2:]
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execvp(command[0], command)
    screen, stream, pending = Screen(120, fold), "", ""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    for width in (120, 70, 40, 100, 25, 60, 30) if fold else (120, 90, 70, 100, 60, 110, 65):
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
        screen.resize(width)
        start, drawn = len(stream), 0
        while drawn < 4 or (drawn < 100 and not stream.endswith(("\r", "\n"))):
            try:
                got = os.read(terminal, 4096)
            except OSError:  # nobody holds the other end any more
                sys.exit("terminal.py: the command ended early:\n" + stream)
            pending += got.decode("utf-8", "replace")
            cut = UNFINISHED.search(pending).start()
            screen.feed(pending[:cut])
            stream, pending = stream + pending[:cut], pending[cut:]
            drawn = stream.count("%|", start)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)

    wanted, found = written(stream), screen.lines
    good = len(found) == len(wanted) and all(
        have.rstrip() == want.rstrip() if fold else want.startswith(have.rstrip()) for want, have in zip(wanted, found)
    )
    bars = [line for line in found if BAR.search(line)]
    if good and len(bars) <= 1 and any("eval" in line for line in wanted):
        return
    print("on the screen:", *found, "written:", *wanted, sep="\n| ")
    sys.exit(1)


main()
