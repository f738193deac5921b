#!/usr/bin/env python3
"""Full, read-only, failing and vanishing storage: status 10 with a sentence, earlier checkpoints whole, nothing half
done left, and the run goes on when there is room again."""
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import time

import fault
from fault import CONFIG, DATA, IO, OK, STOPPED, USAGE, Failed, Skipped, eventually, want


def nothing_half_done(run_dir):
    for folder, _, names in os.walk(run_dir):
        for name in names + [os.path.basename(folder)]:
            want(".tmp-" not in name, "%s/%s is left", folder, name)


def status_is_true(job, run_dir, code):
    """Where there is one: a disk may be too small for any file."""
    path = os.path.join(run_dir, "status.json")
    if os.path.exists(path):
        with open(path) as f:
            status = json.load(f)
        want(status["exit_code"] == code and status["state"] != "running", "status.json after %d: %s", code, status)
        want(status["reason"] in "\n".join(job.errors()), "the reason in status.json is not the error that was told: %s\n%s", status["reason"], job.tail())


def full_disk(box):
    """F56: every size of disk from nothing to enough. Half the trials in ddp."""
    sizes = list(range(4096, 131072, 4096)) + list(range(131072, 1 << 20, 32768))
    if not box.options.long:
        sizes = sizes[:1] + sorted(box.random.sample(sizes[1:], box.trials(7, len(sizes) - 1)))
    codes = {}
    for size in sizes:
        mode, world = box.random.choice((("single", 1), ("ddp", 2)))
        with fault.small_disk(box, size) as disk:
            run_dir = os.path.join(disk, "run")
            job = box.train(mode, world, run_dir)
            code, _ = job.end((OK, IO), fault.RUN_SECONDS)
            codes[code] = codes.get(code, 0) + 1
            try:
                if code == IO:
                    job.one_error(r"No space left on device")
                    steps = box.verify(run_dir)
                    nothing_half_done(run_dir)
                    status_is_true(job, run_dir, IO)
                    if steps and os.path.exists(os.path.join(run_dir, "checkpoints", "latest")):
                        with open(os.path.join(run_dir, "checkpoints", "latest")) as f:
                            want(os.path.isdir(os.path.join(run_dir, "checkpoints", f.read().strip())), "latest is wrong")
                job.nobody_left()
                subprocess.run(["mount", "-o", "remount,size=16m", disk], check=True)
                box.resumes(mode, world, run_dir)
            except Failed as why:
                raise Failed("%s on a disk of %d bytes: %s" % (mode, size, why))
        box.clean()
    want(IO in codes, "no disk was full")
    box.note("disks of %d sizes: code 10 %d times, then resumed to the golden bits", len(sizes), codes[IO])


CALLS = {"fsync": ("EIO", 24), "fallocate": ("ENOSPC", 8), "pwrite64": ("ENOSPC", 24), "rename": ("EIO", 8),
         "mkdir": ("ENOSPC", 6), "write": ("ENOSPC", 60)}


def failing_calls(box):
    """F57: the n-th call of a kind fails, once. Whatever it was for, the run ends with 10, or goes on: then it is told,
    or did not matter."""
    if not fault.can_trace():
        raise Skipped("processes cannot be traced")
    count, failed, told = 0, 0, 0
    for call, (error, most) in CALLS.items():
        numbers = box.random.sample(range(1, most + 1), min(most, box.trials(2, most)))
        for n in sorted(numbers):
            run_dir = box.new_dir()
            wrap = fault.strace("trace=" + call, "inject=%s:error=%s:when=%d" % (call, error, n))
            job = box.start(*box.arguments("single", 1, run_dir), wrap=wrap)
            code, _ = job.end((OK, IO), fault.RUN_SECONDS)
            count += 1
            try:
                if code == IO:
                    failed += 1
                    job.told(r"error: .*(Input/output error|No space left on device|could not be written)")
                else:
                    want(not job.errors(), "code 0, but an error is told:\n%s", job.tail())
                    told += len(re.findall(r"warning: .*(Input/output error|No space left on device)", job.err())) == 1
                box.verify(run_dir)
                nothing_half_done(run_dir)
                box.resumes("single", 1, run_dir)
            except Failed as why:
                raise Failed("%s number %d fails with %s: %s" % (call, n, error, why))
            box.clean()
    want(failed + told > 0, "no failing call mattered")
    box.note("failing calls: %d, of which %d ended the run with 10, %d were told", count, failed, told)


LONG = ("train.steps=1000000", "checkpoint.every=200 steps", "eval.every=500000 steps")


@contextlib.contextmanager
def filled_while_it_trains(box, mode, world):
    """A job on a disk that has no byte left since its 450th line: (job, run directory, what makes room again). The job
    writes a MiB a second: the room that is made lasts until a busy machine comes to look."""
    with fault.small_disk(box, 64 << 20) as disk:
        run_dir, filler = os.path.join(disk, "run"), os.path.join(disk, "filler")
        job = box.train(mode, world, run_dir, *LONG)
        job.writes(450)
        everybody = [job.pid, *job.ranks().values()]
        for pid in everybody:
            job.send(pid, signal.SIGSTOP)
        with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as f:
            while True:
                f.write(bytes(4096))
        for pid in reversed(everybody):
            job.send(pid, signal.SIGCONT)
        yield job, run_dir, lambda: os.unlink(filler)


def wait_for(job, pattern):
    eventually(lambda: re.search(pattern, job.err()) or job.has_ended(), fault.RUN_SECONDS, "no '%s'" % pattern)
    job.told(pattern)


def full_for_a_while(box):
    """No room for metrics and checkpoints, then room again: training continues, nothing is lost, each outage of the
    metrics is told once, and the end is as if the disk had never been full."""
    for mode, world in box.some(("single", 1), ("ddp", 2)):
        with filled_while_it_trains(box, mode, world) as (job, run_dir, make_room):
            wait_for(job, r"cannot write %s/metrics\.jsonl: No space left on device.*training continues" % run_dir)
            wait_for(job, r"the checkpoint of step \d+ is not saved: .*No space left on device.*tries again")
            make_room()
            wait_for(job, r"%s/metrics\.jsonl is written again; no line is lost" % run_dir)
            wait_for(job, r"the checkpoint of step \d+ is saved; \d+ before it could not be")
            job.send(job.pid, signal.SIGTERM)
            job.end(STOPPED, fault.RUN_SECONDS)
            want(len(re.findall(r"cannot write .*metrics", job.err())) == 1, "told more than once:\n%s", job.tail())
            want(not job.errors(), "an error is told:\n%s", job.tail())
            steps = [line["step"] for line in fault.metrics(run_dir)]
            want(steps == list(range(1, len(steps) + 1)), "lines are missing or out of order")
            want(fault.steps_of(run_dir)[-1] == len(steps), "the last checkpoint is not of the last line")
            job.nobody_left()
            box.verify(run_dir)
            nothing_half_done(run_dir)
        box.clean()


def full_at_the_end(box):
    """A job that is stopped while the disk is full: 10, for its last state is not saved, and it goes on when there is
    room again."""
    for mode, world in box.some(("single", 1), ("ddp", 2)):
        with filled_while_it_trains(box, mode, world) as (job, run_dir, make_room):
            wait_for(job, r"the checkpoint of step \d+ is not saved: .*No space left on device.*tries again")
            job.send(job.pid, signal.SIGTERM)
            job.end(IO, fault.RUN_SECONDS)
            job.one_error(r"the checkpoint of step \d+ is not saved: .*No space left on device")
            status_is_true(job, run_dir, IO)
            box.left_clean(job, run_dir)
            make_room()
            steps = box.verify(run_dir)
            want(steps > 0, "the checkpoints from before are gone")
            last = fault.steps_of(run_dir)[-1]
            box.run(OK, *box.arguments(mode, world, run_dir, *LONG[1:], "train.steps=%d" % (last + 10)))
            steps = [line["step"] for line in fault.metrics(run_dir) if line["kind"] == "train"]
            want(steps == list(range(1, last + 11)), "lines are missing or out of order")
        box.clean()


def full_for_good(box):
    """The last checkpoint cannot be saved, and metrics.jsonl cannot be written either: status.json tells the first."""
    for mode, world in box.some(("single", 1), ("ddp", 2)):
        with fault.small_disk(box, 120 << 10) as disk:
            run_dir = os.path.join(disk, "run")
            job = box.train(mode, world, run_dir, "train.steps=400", "checkpoint.every=20 steps")
            job.end(IO, fault.RUN_SECONDS)
            job.one_error(r"the checkpoint of step 400 is not saved: .*No space left on device")
            status_is_true(job, run_dir, IO)


def read_only(box):
    """F62: refused at the start, not at the first checkpoint."""
    with fault.small_disk(box, 1 << 20) as disk:
        os.mkdir(os.path.join(disk, "run"))
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        for run_dir in (os.path.join(disk, "run"), os.path.join(disk, "other")):
            job = box.run(IO, *box.arguments("ddp", 2, run_dir))
            job.one_error(r"'?%s" % run_dir, r"Read-only file system")
            want("step 1/" not in job.err(), "a step was made")


def turned_read_only(box):
    """The disk is remounted in the middle, as a kernel does on errors."""
    with fault.small_disk(box, 4 << 20) as disk:
        run_dir = os.path.join(disk, "run")
        job = box.train("single", 1, run_dir)
        job.writes(9)
        forced = subprocess.run(["mount", "-o", "remount,ro", disk], stderr=subprocess.DEVNULL)
        code, _ = job.end((OK, IO), fault.RUN_SECONDS)
        if forced.returncode == 0 and code == IO:
            job.one_error(r"Read-only file system")
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        box.recovers(job, "single", 1, run_dir)


def no_such_place(box):
    """What stands where the run directory should be, or cannot be made."""
    blocked = box.path("blocked")
    os.makedirs(blocked, exist_ok=True)
    box.write("blocked/file", "x")
    os.mkfifo(os.path.join(blocked, "fifo"))
    os.symlink(os.path.join(blocked, "nowhere"), os.path.join(blocked, "dangling"))
    os.makedirs(os.path.join(blocked, "taken"))
    box.write("blocked/taken/checkpoints", "x")
    os.makedirs(os.path.join(blocked, "pipes"))
    os.makedirs(os.path.join(blocked, "fifos", "logs"))
    os.mkfifo(os.path.join(blocked, "pipes", "metrics.jsonl"))
    for name in ("file", "file/run", "fifo", "dangling", "taken", "x" * 300, "x/" * 3000 + "run"):
        job = box.run(IO, *box.arguments("single", 1, os.path.join(blocked, name)))
        job.one_error(r"error: ")
    os.mkfifo(os.path.join(blocked, "fifos", "summary.json"))
    os.mkfifo(os.path.join(blocked, "fifos", "logs", "rank-0.log"))
    job = box.run(IO, *box.arguments("single", 1, os.path.join(blocked, "pipes")))
    job.one_error(r"metrics.jsonl: expected a regular file")
    box.run(OK, *box.arguments("single", 1, os.path.join(blocked, "fifos"))) # nothing of these is needed
    want("x" not in os.listdir(blocked), "folders of a path too long were made")
    job = box.run(IO, *box.arguments("single", 1, "/proc/run"))
    job.one_error(r"/proc/run")


# What someone may plant under a name of ours in a run directory, and what leads where it must not lead.
def plant_link(path, victim):
    os.symlink(os.path.join(victim, "file"), path)


def plant_link_to_folder(path, victim):
    os.symlink(os.path.join(victim, "folder"), path)


def plant_dangling_link(path, victim):
    os.symlink(os.path.join(victim, "nowhere"), path)


def plant_fifo(path, victim):
    os.mkfifo(path)


def plant_folder(path, victim):
    os.mkdir(path)


def plant_file(path, victim):
    with open(path, "w") as f:
        f.write("planted")


ANY_FILE = (plant_link, plant_link_to_folder, plant_dangling_link, plant_fifo, plant_folder)
ANY_FOLDER = (plant_link, plant_link_to_folder, plant_dangling_link, plant_fifo, plant_file)
# The name; what is planted there; the codes that the run may end with.
PLANTED = ((".lock", ANY_FILE, (IO,)), ("metrics.jsonl", ANY_FILE, (IO,)), ("checkpoints", ANY_FOLDER, (IO,)),
           ("logs", ANY_FOLDER, (OK,)), ("logs/rank-0.log", ANY_FILE, (OK,)), ("status.json", ANY_FILE, (OK,)),
           ("summary.json", ANY_FILE, (OK,)), ("env.json", ANY_FILE, (OK,)), ("report.html", ANY_FILE, (OK,)),
           ("config.input.yaml", ANY_FILE, (OK, IO)), ("config.resolved.yaml", ANY_FILE, (OK, IO)),
           ("checkpoints/latest", ANY_FILE, (OK,)), ("checkpoints/step-00000048", ANY_FOLDER, (fault.CHECKPOINT,)))


def tree(folder):
    """Every name below, with what a file holds."""
    out = {}
    for top, folders, names in os.walk(folder):
        for name in folders + names:
            path = os.path.join(top, name)
            with contextlib.suppress(OSError):
                out[path] = open(path, "rb").read() if os.path.isfile(path) else os.readlink(path)
            out.setdefault(path, "")
    return out


def planted_links(box):
    """Each thing at each name: nothing outside the run directory is read or written, nothing is waited for, and what is
    refused is told with its path. What is replaced in one step (status.json and the like) takes the place of a link."""
    count = 0
    for name, kinds, codes in PLANTED:
        for kind in box.some(*reversed(kinds)):
            run_dir, victim = box.new_dir(), box.new_dir()
            os.makedirs(os.path.join(victim, "folder"))
            plant_file(os.path.join(victim, "file"), victim)
            plant_file(os.path.join(victim, "folder", "rank-0.log"), victim)
            path = os.path.join(run_dir, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            kind(path, victim)
            before = tree(victim)
            mode, world = box.random.choice((("single", 1), ("ddp", 2)))
            job = box.train(mode, world, run_dir)
            try:
                code, _ = job.end(codes, fault.RUN_SECONDS)
                want(tree(victim) == before, "something outside the run directory changed")
                if code != OK:
                    job.one_error(re.escape(path))
                elif kind is not plant_link and not os.path.isfile(path):
                    job.told(r"warning: .*%s(?![/\w])" % re.escape(path))
                if os.path.isfile(os.path.join(run_dir, "summary.json")):
                    want(fault.summary(run_dir)["params_xxh3"] == box.golden(mode, world)[0], "other bits")
                count += 1
            except Failed as why:
                raise Failed("%s at %s: %s" % (kind.__name__, name, why))
            box.clean_runs(run_dir, victim)
    box.note("planted: %d things under our names, none of them led outside", count)


def planted_before_reading(box):
    """Links where files are read: checkpoints and reports take nothing from outside the folder that they are given."""
    good, victim = box.new_dir(), box.new_dir()
    box.run(OK, *box.arguments("single", 1, good))
    shutil.copytree(good, victim)
    step = fault.steps_of(good)[-1]
    for name in ("model.safetensors", "optimizer.safetensors", "state.json", "MANIFEST.json"):
        path = os.path.join(fault.checkpoint(good, step), name)
        os.rename(path, path + ".real")
        os.symlink(os.path.join(fault.checkpoint(victim, step), name), path)
        job = box.run((fault.CHECKPOINT, fault.CHECK), "ckpt", "verify", fault.checkpoint(good, step))
        job.told(r"%s: expected a regular file, found a symbolic link, which is not followed; move it away" % re.escape(path))
        os.rename(path + ".real", path)
    box.run(OK, "ckpt", "verify", good)
    secret = box.write("run-secret", "secret: 1\n")
    for name in ("config.resolved.yaml", "env.json", "summary.json"):
        path = os.path.join(good, name)
        os.rename(path, path + ".real")
        os.symlink(secret, path)
        box.run(OK, "report", good)
        with open(os.path.join(good, "report.html")) as f:
            want("secret: 1" not in f.read(), "what %s leads to is in the report", name)
        os.unlink(path)
        os.rename(path + ".real", path)
    path = os.path.join(good, "config.resolved.yaml")
    os.rename(path, path + ".real")
    for plant, found in ((lambda: os.symlink(path + ".real", path), "a symbolic link, which is not followed"),
                         (lambda: os.mkfifo(path), "a FIFO")):
        plant()
        box.run(CONFIG, "eval", good).one_error(r"%s: cannot be read: expected a regular file, found %s; move it away" % (re.escape(path), found))
        os.unlink(path)
    os.rename(path + ".real", path)
    os.rename(os.path.join(good, "metrics.jsonl"), os.path.join(good, "real"))
    os.symlink(os.path.join(victim, "metrics.jsonl"), os.path.join(good, "metrics.jsonl"))
    job = box.run(DATA, "report", good)
    job.one_error(r"%s/metrics.jsonl cannot be read: .*symbolic link, which is not followed; move it away" % good)


def modes_of_files(box):
    """What is made is as the umask leaves it, and never writable for everybody."""
    for mask, file_mode, folder_mode in ((0o022, 0o644, 0o755), (0o077, 0o600, 0o700), (0, 0o664, 0o775)):
        run_dir = box.new_dir()
        job = box.train("ddp", 2, run_dir, limits=lambda: os.umask(mask))
        job.end(OK, fault.RUN_SECONDS)
        want(stat.S_IMODE(os.lstat(run_dir).st_mode) == folder_mode, "%s with umask %03o", run_dir, mask)
        for top, folders, names in os.walk(run_dir):
            for name in folders + names:
                mode = stat.S_IMODE(os.lstat(os.path.join(top, name)).st_mode)
                want(mode == (folder_mode if name in folders else file_mode), "%s/%s has mode %03o with umask %03o", top,
                     name, mode, mask)
        box.clean_runs(run_dir)


def vanishing(box):
    """The folder is removed, or moved, under a running job."""
    for how in ("checkpoints", "run"):
        run_dir = box.new_dir()
        job = box.train("ddp", 2, run_dir, "train.steps=100000")
        job.writes(9)
        target = os.path.join(run_dir, "checkpoints") if how == "checkpoints" else run_dir
        os.rename(target, target + ".moved")
        job.has_ended(0.2)
        job.send(job.pid, signal.SIGTERM)
        job.end((IO, STOPPED))
        job.nobody_left()
        box.clean()


def in_use(box):
    """One run directory, one job; the other is told which directory, and disturbs nothing."""
    run_dir = box.new_dir()
    first = box.train("ddp", 2, run_dir)
    eventually(lambda: os.path.exists(os.path.join(run_dir, "metrics.jsonl")), fault.RUN_SECONDS, "no start")
    os.kill(first.pid, signal.SIGSTOP)
    for rank in first.ranks().values():
        first.send(rank, signal.SIGSTOP)
    for mode, world in box.some(("single", 1), ("dp", 2), ("ddp", 2)):
        second = box.run(IO, *box.arguments(mode, world, run_dir))
        second.one_error(r"run directory '%s' is in use by another job" % run_dir)
    for rank in first.ranks().values():
        first.send(rank, signal.SIGCONT)
    os.kill(first.pid, signal.SIGCONT)
    first.end(OK, fault.RUN_SECONDS)
    want(fault.summary(run_dir)["params_xxh3"] == box.golden("ddp", 2)[0], "the first job was disturbed")
    want(fault.metrics(run_dir) == box.golden("ddp", 2)[1], "the first job's metrics were disturbed")


def file_size_limit(box):
    """ulimit -f: an error like any other, not a signal."""
    for limit in (0, 100, 1000, 10000, 30000, 50000):
        for mode, world in box.some(("single", 1), ("ddp", 2)):
            run_dir = box.new_dir()
            job = box.train(mode, world, run_dir,
                            limits=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
            code, _ = job.end((IO, fault.MEMORY, OK), fault.RUN_SECONDS)
            try:
                want(code != OK or limit > 30000, "code 0")
                if code != OK and limit >= 1000: # below, even the error does not fit into the file that it is written to
                    job.one_error(r"File too large|limit on file sizes")
                if os.path.isdir(run_dir):
                    box.left_clean(job, run_dir)
                    nothing_half_done(run_dir)
                    box.resumes(mode, world, run_dir)
            except Failed as why:
                raise Failed("%s with files of at most %d bytes: %s" % (mode, limit, why))
            box.clean()


def without_standard_streams(box):
    """Started with descriptors 0, 1 and 2 closed, as some service managers do: files must not take their places."""
    for closed in ((1,), (2,), (0, 1), (0, 1, 2)):
        for mode, world in box.some(("single", 1), ("ddp", 2)):
            run_dir = box.new_dir()

            def close():
                for fd in closed:
                    os.close(fd)

            job = box.train(mode, world, run_dir, limits=close)
            job.end((OK, IO), fault.RUN_SECONDS)
            try:
                want(fault.summary(run_dir)["params_xxh3"] == box.golden(mode, world)[0], "other bits")
                want(fault.metrics(run_dir) == box.golden(mode, world)[1], "other metrics")
                box.left_clean(job, run_dir)
                box.verify(run_dir)
            except (Failed, OSError, ValueError) as why:
                raise Failed("%s without %s: %s" % (mode, closed, why))
            box.clean()


def nobody_reads(box):
    """The reader of its output goes away: whatever the end is, the checkpoints are whole and the run can go on."""
    for mode, world in box.some(("single", 1), ("ddp", 2)):
        run_dir = box.new_dir()
        reader, writer = os.pipe()

        def take():
            os.dup2(writer, 2)
            os.close(reader)

        job = box.train(mode, world, run_dir, limits=take)
        os.close(writer)
        job.writes(5)
        os.close(reader)
        job.end((OK, IO, 141), fault.RUN_SECONDS)
        box.recovers(job, mode, world, run_dir)
        box.clean()


if __name__ == "__main__":
    fault.main(full_disk, failing_calls, full_for_a_while, full_at_the_end, full_for_good, read_only, turned_read_only, no_such_place,
               planted_links, planted_before_reading, modes_of_files, vanishing, in_use, file_size_limit,
               without_standard_streams, nobody_reads, kernels="ref")
