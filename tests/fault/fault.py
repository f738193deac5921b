"""What the fault tests share: jobs of the real command, faults put into them, and the oracle that judges what is left.

Each *_test.py is a list of functions that take a Box, and runs them by main(). The oracle, after every trial: the job
has ended in time, with its code; one line on stderr tells the first cause; no process of the job is left, no name in
/dev/shm, no socket in its folder; every checkpoint verifies; the same command, given again, ends with the parameters
and the metrics of a run that nothing happened to, and leaves no temporary folder behind.
"""
import argparse
import atexit
import contextlib
import glob
import json
import os
import random
import re
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import uuid

# Hang detectors, not goals: what was measured is printed. The default ddp.timeout is ten minutes, so whatever ends
# before has noticed by itself. Sanitizers and busy machines are slow.
END_SECONDS = 200
RUN_SECONDS = 400
GONE_SECONDS = 100

OK, USAGE, CONFIG, DATA, MEMORY, COMM, CHECKPOINT, NUMERIC, IO, UNSUPPORTED, CHECK, STOPPED = 0, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 75

# Steps of about half a millisecond, dropout so that positions in random streams count, and a short last batch.
YAML = """tandem: 1
name: fault
seed: 7
model:
  input: 48
  layers:
    - linear: {name: fc1, out: 96}
    - relu
    - dropout: 0.25
    - linear: {name: fc2, out: 4}
data:
  train: {format: synthetic, samples: 250, classes: 4}
  eval: {format: synthetic, samples: 40, classes: 4, seed: 9}
  workers: 1
loss: cross_entropy
optimizer: {type: adam, lr: 1e-3}
train: {steps: 48, batch: {global: 24}}
parallel: {mode: ddp, device_ids: [0, 1], kernels: KERNELS}
eval: {every: 16 steps}
checkpoint: {every: 4 steps, keep_last: 3}
log: {every: 1 steps}
"""


class Failed(Exception):
    """A check that did not hold."""


class Skipped(Exception):
    """What this machine does not permit."""


def want(condition, text, *values):
    if not condition:
        raise Failed(text % values if values else text)


# ---- processes ----

def environment(mark, extra=None):
    ours = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "NO_COLOR", "COLUMNS")
    prefixes = ("TANDEM_RANK", "TANDEM_WORLD", "TANDEM_LAUNCH", "TANDEM_LOG", "TORCHELASTIC", "SLURM_", "OMPI_", "PMI")
    env = {k: v for k, v in os.environ.items() if k not in ours and not k.startswith(prefixes)}
    env["FAULT_MARK"] = mark
    # In a sanitizer build: a signal is to kill, not to be reported, and the leak check does not work while traced.
    env["ASAN_OPTIONS"] = "detect_leaks=0:handle_segv=0:handle_sigbus=0:handle_abort=0"
    env.update(extra or {})
    return env


def state_of(pid):
    """The state letter of a process; X if there is none."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as f:
            return chr(f.read().rpartition(b")")[2].split()[0][0])
    except (OSError, IndexError):
        return "X"


def variable_of(pid, name):
    try:
        with open("/proc/%d/environ" % pid, "rb") as f:
            for entry in f.read().split(b"\0"):
                if entry.startswith(name.encode() + b"="):
                    return entry.partition(b"=")[2].decode()
    except OSError:
        pass
    return None


def catches(pid, number):
    """Does the process handle the signal by now? In the first millisecond the system ends it, as it ends any other."""
    try:
        with open("/proc/%d/status" % pid) as f:
            masks = [int(line.split()[1], 16) for line in f if line.startswith(("SigCgt", "SigBlk"))]
    except OSError:
        return False
    return any(mask >> (number - 1) & 1 for mask in masks)


def marked(mark):
    """Living processes that carry the mark, by pid."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if variable_of(pid, "FAULT_MARK") == mark and state_of(pid) not in "ZX"]


def eventually(condition, seconds, text):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Failed("after %.1f s: %s" % (seconds, text() if callable(text) else text))
        time.sleep(0.001)


class Job:
    """One `tandem` that was started, with what it writes."""
    count = 0

    def __init__(self, box, args, env=None, wrap=(), limits=None, cwd=None, pipe=None):
        """`pipe`: a descriptor that gets standard output and standard error instead of files."""
        Job.count += 1
        self.box = box
        self.mark = uuid.uuid4().hex
        self.args = list(args)
        base = os.path.join(box.folder, "job-%d" % Job.count)
        self.out_path, self.err_path = base + ".out", base + ".err"
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.started = time.monotonic()
            self.process = subprocess.Popen(list(wrap) + [box.tandem] + self.args, stdin=subprocess.DEVNULL, stdout=out if pipe is None else pipe,
                                            stderr=err if pipe is None else pipe, env=environment(self.mark, env), preexec_fn=limits, cwd=cwd)
        self.pid = self.process.pid
        self.fd = os.pidfd_open(self.pid)
        box.jobs.append(self)

    def ranks(self):
        """Pids of the ranks that this parent has now, by rank."""
        try:
            with open("/proc/%d/task/%d/children" % (self.pid, self.pid)) as f:
                pids = [int(text) for text in f.read().split()]
        except OSError:
            return {}
        found = {}
        for pid in pids:
            number = variable_of(pid, "TANDEM_RANK")
            if number is not None:
                found[int(number)] = pid
        return found

    def rank(self, number, may_have_ended=False):
        """The pid of a rank as soon as it is there. None if the job ended before, and may."""
        end = time.monotonic() + END_SECONDS
        while time.monotonic() < end:
            pid = self.ranks().get(number)
            if pid is not None:
                return pid
            if self.has_ended():
                want(may_have_ended, "the job ended before rank %d was seen\n%s", number, self.tail())
                return None
        raise Failed("rank %d is not there after %.1f s" % (number, END_SECONDS))

    def writes(self, lines):
        """Waits until metrics.jsonl of its run directory has so many lines, or the job ended."""
        path = os.path.join(self.args[self.args.index("--run-dir") + 1], "metrics.jsonl")

        def there():
            with contextlib.suppress(OSError), open(path, "rb") as f:
                return f.read().count(b"\n") >= lines
            return lines == 0

        eventually(lambda: there() or self.has_ended(), RUN_SECONDS, lambda: "no line %d\n%s" % (lines, self.tail()))

    def has_ended(self, seconds=0):
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def end(self, code=None, seconds=END_SECONDS):
        """Waits for the end; its code, as a shell would say it, must be `code` or one of them. Returns (code, seconds)."""
        start = time.monotonic()
        if not self.has_ended(seconds):
            raise Failed("still there after %.1f s: %s\n%s" % (seconds, " ".join(self.args), self.tail()))
        took = time.monotonic() - start
        self.process.wait()
        status = self.process.returncode
        status = 128 - status if status < 0 else status
        allowed = (code,) if isinstance(code, int) else code
        if allowed is not None and status not in allowed:
            raise Failed("code %d, wanted %s: %s\n%s" % (status, " or ".join(map(str, allowed)), " ".join(self.args),
                                                         self.tail()))
        return status, took

    def err(self):
        with open(self.err_path, errors="replace") as f:
            return f.read()

    def out(self):
        with open(self.out_path, errors="replace") as f:
            return f.read()

    def errors(self):
        return [line for line in self.err().splitlines() if re.search(r"(^|: )error(\[\w+\])?: ", line)]

    def one_error(self, *patterns):
        """The one line that tells the first cause, in which all the patterns are found."""
        lines = self.errors()
        want(len(lines) == 1, "%d lines of errors, wanted 1:\n%s", len(lines), self.tail())
        self.told(*patterns, text=lines[0])
        return lines[0]

    def told(self, *patterns, text=None):
        text = self.err() if text is None else text
        for pattern in patterns:
            want(re.search(pattern, text), "no '%s' in:\n%s", pattern, text)

    def tail(self, lines=12):
        return "\n".join("  | " + line for line in (self.out() + self.err()).splitlines()[-lines:])

    def nobody_left(self, seconds=GONE_SECONDS):
        eventually(lambda: not marked(self.mark), seconds, lambda: "processes are left: %s" % marked(self.mark))

    def send(self, pid, number):
        """Nothing to one who has ended; None is the pid of one who ended before it was seen."""
        with contextlib.suppress(ProcessLookupError):
            if pid is not None:
                os.kill(pid, number)

    def sweep(self):
        """Ends what a failed test leaves. Only processes that this job started."""
        for pid in [self.pid] if not self.has_ended() else []:
            self.send(pid, signal.SIGKILL)
        for pid in marked(self.mark):
            self.send(pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.fd)


# ---- one test's folder ----

class Box:
    def __init__(self, options, name, kernels):
        self.options, self.tandem, self.name = options, options.tandem, name
        self.random = random.Random("%s/%s" % (options.seed, name))
        self.folder = tempfile.mkdtemp(prefix="fault-", dir=options.dir)
        self.jobs, self.notes, self.goldens, self.dirs = [], [], {}, 0
        self.yaml = self.write("job.yaml", YAML.replace("KERNELS", kernels))

    def some(self, *choices):
        """All of them; with --few the last, which is ddp where they are modes."""
        return choices[-1:] if self.options.few else choices

    def trials(self, few, many):
        if self.options.few:
            few = (few + 5) // 6
        return self.options.trials or (many if self.options.long else few)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text):
        path = self.path(name)
        with open(path, "w" if isinstance(text, str) else "wb") as f:
            f.write(text)
        return path

    def new_dir(self):
        self.dirs += 1
        return self.path("run-%d" % self.dirs)

    def note(self, text, *values):
        self.notes.append(text % values if values else text)

    def start(self, *args, **more):
        return Job(self, args, **more)

    def run(self, code, *args, seconds=RUN_SECONDS, **more):
        job = Job(self, args, **more)
        job.end(code, seconds)
        return job

    def arguments(self, mode, world, run_dir, *more):
        devices = "parallel.device_ids=%s" % list(range(world))
        return ["train", self.yaml, "parallel.mode=" + mode, devices, "--run-dir", run_dir, *more]

    def train(self, mode, world, run_dir, *more, **options):
        return self.start(*self.arguments(mode, world, run_dir, *more), **options)

    def golden(self, mode, world, *more):
        """What a run to which nothing happens ends with: (params_xxh3, metrics, seconds)."""
        key = (mode, world, more)
        if key not in self.goldens:
            run_dir = self.new_dir()
            self.run(OK, *self.arguments(mode, world, run_dir, *more)) # the first reads files from a cold disk
            shutil.rmtree(run_dir)
            job = self.start(*self.arguments(mode, world, run_dir, *more))
            _, took = job.end(OK, RUN_SECONDS)
            self.goldens[key] = summary(run_dir)["params_xxh3"], metrics(run_dir), took
            shutil.rmtree(run_dir)
        return self.goldens[key]

    def clean(self):
        """Ends jobs and removes files; the folder itself stays for the next."""
        for job in self.jobs:
            job.sweep()
        self.jobs = []
        if self.options.keep:
            return
        for name in os.listdir(self.folder):
            if name.startswith(("run-", "job-")) and name != "job.yaml":
                path = self.path(name)
                shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)

    def clean_runs(self, *dirs):
        """As clean, but only of these run directories."""
        for job in self.jobs:
            job.sweep()
        self.jobs = []
        for path in () if self.options.keep else dirs:
            shutil.rmtree(path)

    # -- the oracle --

    def verify(self, run_dir):
        """Every checkpoint is whole. How many there are."""
        steps = steps_of(run_dir)
        if steps:
            self.run(OK, "ckpt", "verify", run_dir)
        return len(steps)

    def left_clean(self, job, run_dir):
        job.nobody_left()
        new = [path for path in shared_memory() if path not in self.options.shm]
        want(not new, "left in /dev/shm: %s", new)
        for folder, _, files in os.walk(run_dir):
            for name in files:
                kind = os.lstat(os.path.join(folder, name)).st_mode
                want(stat.S_ISREG(kind), "%s/%s is no regular file", folder, name)

    def resumes(self, mode, world, run_dir, *more):
        """The same command again ends as if nothing had happened."""
        params, lines, _ = self.golden(mode, world, *more)
        job = self.run(OK, *self.arguments(mode, world, run_dir, *more))
        came = summary(run_dir)
        want(came["params_xxh3"] == params, "params_xxh3 %s, the run without a fault has %s\n%s", came["params_xxh3"],
             params, job.tail())
        want(came["exit_reason"] == "finished", "exit_reason %s", came["exit_reason"])
        want(metrics(run_dir) == lines, "metrics.jsonl differs from the run's without a fault")
        hidden = [name for name in os.listdir(os.path.join(run_dir, "checkpoints")) if ".tmp-" in name]
        hidden += [name for name in os.listdir(run_dir) if ".tmp-" in name]
        want(not hidden, "temporary names are left: %s", hidden)
        with open(os.path.join(run_dir, "status.json")) as f:
            status = json.load(f)
        want(status["state"] == "finished" and status["exit_code"] == 0, "status.json says %s", status)
        self.verify(run_dir)
        return job

    def recovers(self, job, mode, world, run_dir, *more):
        self.left_clean(job, run_dir)
        self.verify(run_dir)
        return self.resumes(mode, world, run_dir, *more)


def steps_of(run_dir):
    folder = os.path.join(run_dir, "checkpoints")
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return sorted(int(name[5:]) for name in names if re.fullmatch(r"step-\d{8,}", name))


def checkpoint(run_dir, step):
    return os.path.join(run_dir, "checkpoints", "step-%08d" % step)


def summary(run_dir):
    with open(os.path.join(run_dir, "summary.json")) as f:
        return json.load(f)


def metrics(run_dir):
    """What metrics.jsonl says but for times."""
    out = []
    with open(os.path.join(run_dir, "metrics.jsonl")) as f:
        for line in f:
            entry = json.loads(line)
            out.append({k: v for k, v in entry.items() if k not in ("ms", "samples_per_s")})
    return out


TIMES = ("ms", "samples_per_s", "speedup_over_one_device", "one_device_samples_per_s", "seconds", "heartbeat", "pid",
         "bytes_moved_per_step", "peak_memory_bytes")


def timeless(value):
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if k not in TIMES}
    return [timeless(v) for v in value] if isinstance(value, list) else value


def content(path):
    """What must be in a file whatever time it was: of pages their pictures; of what the machine is like, that it is there."""
    name = os.path.basename(path)
    if name.endswith(".log") or name in ("env.json", ".lock"):
        return None
    with open(path, "rb") as f:
        text = f.read()
    if name.endswith(".html"):
        return re.findall(rb'base64,[^"]*', text)
    if name.endswith((".json", ".jsonl")):
        return [timeless(json.loads(line)) for line in (text.splitlines() if name.endswith("l") else [text])]
    return text


def contents(run_dir):
    """Every file below a folder, by its path, with its content."""
    paths = [os.path.join(top, name) for top, _, names in os.walk(run_dir) for name in names]
    return {path: content(path) for path in paths}


def percentiles(seconds):
    values = sorted(seconds)
    if not values:
        return "none"
    at = lambda part: values[min(len(values) - 1, int(part * len(values)))] * 1000
    return "p50 %.1f ms, p99 %.1f ms, max %.1f ms" % (at(0.5), at(0.99), values[-1] * 1000)


def shared_memory():
    """Names of shared memory and semaphores that could be ours. Folders there are other tests'."""
    return glob.glob("/dev/shm/*tandem*") + [path for path in glob.glob("/dev/shm/*tdm*") if os.path.isfile(path)]


def working_folder():
    """Memory where there is some: these tests flush thousands of files, and kill processes, not machines."""
    with contextlib.suppress(OSError):
        room = os.statvfs("/dev/shm")
        if os.access("/dev/shm", os.W_OK) and room.f_bavail * room.f_frsize > 256 << 20:
            return "/dev/shm"
    return None


def flip_bit(path, bit):
    with open(path, "r+b") as f:
        f.seek(bit // 8)
        byte = f.read(1)[0]
        f.seek(bit // 8)
        f.write(bytes([byte ^ (1 << bit % 8)]))


# ---- what this machine permits ----

def strace(*expressions):
    """A command in front of another that injects faults into system calls."""
    path = shutil.which("strace")
    if not path:
        raise Skipped("no strace")
    out = [path, "-f", "-qq", "-o", "/dev/null"]
    for expression in expressions:
        out += ["-e", expression]
    return out


def can_trace():
    with contextlib.suppress(Skipped):
        result = subprocess.run(strace("trace=getppid") + ["true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return result.returncode == 0
    return False


def make_digits(box):
    """A folder of pictures, `digits`."""
    if not os.path.exists(os.path.join(os.environ.get("TANDEM_MODULE_PATH", ""), "libtandem-image.so")):
        raise Skipped("no module image")
    box.run(OK, "data", "make", box.path("digits"), "--format", "image_folder", "--samples", "80")


@contextlib.contextmanager
def small_disk(box, size):
    """A folder that is a file system of `size` bytes of its own."""
    path = box.path("disk")
    os.makedirs(path, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", "size=%d,mode=700" % size, "tmpfs", path]
    if os.geteuid() != 0 or subprocess.run(command, stderr=subprocess.DEVNULL).returncode != 0:
        raise Skipped("no permission to mount a tmpfs")
    try:
        yield path
    finally:
        for job in box.jobs:
            if not job.has_ended():
                job.sweep()
        subprocess.run(["umount", "-l", path], check=False)


# ---- running ----

def parse():
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--tandem", default=os.environ.get("TANDEM"), help="the command (default: $TANDEM)")
    parser.add_argument("--long", action="store_true", help="many more trials")
    parser.add_argument("--few", action="store_true", help="a sixth of the trials, one of several modes: for slow builds")
    parser.add_argument("--trials", type=int, default=0, help="how many trials of what is drawn by chance")
    parser.add_argument("--seed", type=int, default=1, help="of the drawn instants; another one draws others")
    parser.add_argument("--dir", default=None, help="where the runs are kept while they last")
    parser.add_argument("--keep", action="store_true", help="keeps the runs")
    parser.add_argument("names", nargs="*", help="only tests with one of these in their names")
    options = parser.parse_args()
    if not options.tandem:
        parser.error("--tandem or $TANDEM must say where the command is")
    options.tandem = os.path.abspath(options.tandem)
    options.dir = options.dir or working_folder()
    options.shm = set(shared_memory())
    return options


def run_one(options, test, kernels):
    start = time.monotonic()
    box = Box(options, test.__name__, kernels)
    if not options.keep:
        atexit.register(shutil.rmtree, box.folder, True)
    word, text = "ok", ""
    try:
        test(box)
    except Skipped as why:
        word, text = "skipped", str(why)
    except Failed as why:
        word, text = "FAILED", str(why)
    finally:
        box.clean()
    print("%-8s%-28s %5.1f s  %s" % (word, test.__name__, time.monotonic() - start, text), flush=True)
    for note in box.notes:
        print("        " + note, flush=True)
    return word


def main(*tests, kernels="auto"):
    """`kernels` of the jobs: ref where the faults lie in files. oneDNN's kernels have no part in them, and to prepare these
    takes two thirds of such a job in a release build."""
    options = parse()
    signal.signal(signal.SIGHUP, signal.SIG_DFL) # under nohup it is ignored, and the jobs would ignore it too
    chosen = [test for test in tests if not options.names or any(name in test.__name__ for name in options.names)]
    words = [run_one(options, test, kernels) for test in chosen]
    bad = words.count("FAILED")
    print("%d of %d hold%s; --seed %d" % (words.count("ok"), len(words), ", %d skipped" % words.count("skipped")
                                          if "skipped" in words else "", options.seed))
    sys.exit(1 if bad else 77 if words and "ok" not in words else 0)
