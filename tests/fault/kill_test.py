#!/usr/bin/env python3
"""kill -9 of ranks, of their parent and of lone processes, at random instants, in every phase, and at every system call
with which a checkpoint is saved."""
import os
import signal
import time

import fault
from fault import OK, Failed, eventually, want


# No checkpoint until far behind the golden end.
END_LATER = ("train.steps=100000", "checkpoint.every=100000 steps")


def kill_rank(job, number):
    """SIGKILL to a rank. Its pid, or None if that came too late."""
    pid = job.rank(number, may_have_ended=True)
    if pid is None or fault.state_of(pid) in "ZX":
        return None
    job.send(pid, signal.SIGKILL)
    return pid


def judge(job, number, pid, took):
    """The end of a job of which a rank was killed; False if that came too late to matter."""
    code, seconds = job.end((OK, 128 + signal.SIGKILL))
    if code == OK:
        want(not job.errors(), "code 0, but:\n%s", job.tail())
        return False
    job.one_error(r"rank %d \(pid %d\) was killed by signal 9 \(SIGKILL\)" % (number, pid))
    took.append(seconds)
    return True


def at_random(box):
    """G01, G03, G16, G17: a rank, a world and an instant, all drawn: half of the instants over the time of a whole run,
    half over its steps."""
    n, took, late, fresh = box.trials(16, 1000), [], 0, 0
    for trial in range(n):
        world = box.random.choice((2, 2, 3, 4))
        length = box.golden("ddp", world)[2]
        number, at, line = box.random.randrange(world), box.random.uniform(0, length), box.random.randrange(51)
        run_dir = box.new_dir()
        job = box.train("ddp", world, run_dir)
        if trial % 2 == 0:
            job.has_ended(at)
        else:
            job.writes(line)
            time.sleep(box.random.uniform(0, 0.002))
        pid = kill_rank(job, number)
        try:
            if pid is None or not judge(job, number, pid, took):
                late += 1
            job.end()
            fresh += not fault.steps_of(run_dir)
            box.recovers(job, "ddp", world, run_dir)
        except Failed as why:
            raise Failed("trial %d, rank %d of %d killed %s: %s" % (
                trial, number, world, "after line %d" % line if trial % 2 else "at %.4f s" % at, why))
        box.clean()
    box.note("kill -9 of a rank: %d of %d resumed to the golden bits (%d came after the end, %d before any checkpoint)",
             n, n, late, fresh)
    box.note("from the kill to the end of the parent: %s", fault.percentiles(took))


def as_it_starts(box):
    """F01, F02: killed as soon as it is there, while the others start and meet."""
    n, took = box.trials(4, 200), []
    for trial in range(n):
        world = 2 + trial % 3
        number = box.random.randrange(world)
        run_dir = box.new_dir()
        job = box.train("ddp", world, run_dir)
        pid = job.rank(number, may_have_ended=True)
        time.sleep(box.random.choice((0, 0, 0.001, 0.003)))
        job.send(pid, signal.SIGKILL)
        if judge(job, number, pid, took) and trial < 4:
            box.recovers(job, "ddp", world, run_dir)
        job.nobody_left()
        box.clean()
    box.note("killed at start-up: %d of %d; %s", n, n, fault.percentiles(took))


def between_steps(box):
    """F04, F05: long training, no checkpoint near; each rank of 2, 3 and 4."""
    took, count = [], 0
    more = ("train.steps=100000", "checkpoint.every=50000 steps", "log.every=50 steps")
    for world in (2, 3, 4):
        for number in range(world):
            if not box.options.long and (world == 3 or number not in (0, world - 1)):
                continue
            run_dir = box.new_dir()
            job = box.train("ddp", world, run_dir, *more)
            job.writes(1)
            time.sleep(box.random.uniform(0, 0.05))
            pid = job.rank(number)
            job.send(pid, signal.SIGKILL)
            want(judge(job, number, pid, took), "code 0 after a kill")
            box.left_clean(job, run_dir)
            count += 1
            box.clean()
    box.note("killed while training: %d of %d; %s", count, count, fault.percentiles(took))


def in_a_save(box):
    """F07: rank 0 killed at each system call of a save. Only a save makes these calls on these names."""
    if not fault.can_trace():
        raise fault.Skipped("processes cannot be traced")
    count = 0
    calls = {"fsync": 20, "fallocate": 6, "mkdir": 4, "rename,renameat,renameat2": 8, "unlink,unlinkat": 12, "ftruncate": 2}
    for call, most in calls.items():
        numbers = sorted(box.random.sample(range(1, most + 1), min(box.trials(2, most), most)))
        for n in numbers:
            run_dir = box.new_dir()
            wrap = fault.strace("trace=" + call, "inject=%s:signal=KILL:when=%d" % (call, n))
            job = box.start(*box.arguments("ddp", 2, run_dir), wrap=wrap)
            code, _ = job.end((OK, 137), fault.RUN_SECONDS)
            if code == 137:
                count += 1
                if call != "fallocate": # the parent reserves shared memory with it
                    job.one_error(r"rank \d \(pid \d+\) was killed by signal 9")
            try:
                box.recovers(job, "ddp", 2, run_dir)
            except Failed as why:
                raise Failed("%s number %d: %s" % (call, n, why))
            box.clean()
    want(count > 0, "no call was ever hit")
    box.note("killed in a save, at its calls: %d kills", count)


def at_the_end(box):
    """F09: the last checkpoint is there; whatever is killed now, the result is complete."""
    n, took = box.trials(4, 100), []
    for trial in range(n):
        run_dir = box.new_dir()
        job = box.train("ddp", 2, run_dir)
        last = fault.checkpoint(run_dir, 48)
        eventually(lambda: os.path.isdir(last) or job.has_ended(), fault.RUN_SECONDS, "no last checkpoint")
        number = trial % 2
        pid = job.ranks().get(number)
        if pid is not None:
            job.send(pid, signal.SIGKILL)
            judge(job, number, pid, took)
        job.end()
        box.recovers(job, "ddp", 2, run_dir)
        box.clean()
    box.note("killed after the last checkpoint: %d of %d", n, n)


def the_parent(box):
    """F10: no rank outlives the parent."""
    n, took = box.trials(5, 200), []
    for trial in range(n):
        world = 2 + trial % 3
        length = box.golden("ddp", world)[2]
        run_dir = box.new_dir()
        job = box.train("ddp", world, run_dir)
        if job.has_ended(0 if trial == 0 else box.random.uniform(0, length)):
            continue
        job.send(job.pid, signal.SIGKILL)
        start = time.monotonic()
        job.end((OK, 137))
        job.nobody_left()
        took.append(time.monotonic() - start)
        box.recovers(job, "ddp", world, run_dir)
        box.clean()
    box.note("parent killed: all ranks gone in %d of %d; %s", n, n, fault.percentiles(took))


def run_again_at_once(box):
    """The launcher killed, and the same command given again without waiting for anything: the ranks of the first still
    live for a moment, and hold the run directory."""
    n = box.trials(6, 300)
    for trial in range(n):
        mode, world = (("single", 1), ("ddp", 2), ("ddp", 3))[trial % 3]
        run_dir = box.new_dir()
        job = box.train(mode, world, run_dir, *END_LATER)
        job.writes(box.random.randrange(1, 40))
        job.send(job.pid, signal.SIGKILL)
        again = box.train(mode, world, run_dir, "checkpoint.every=100000 steps")
        try:
            again.end(OK, fault.RUN_SECONDS)
            job.end(137)
            params = fault.summary(run_dir)["params_xxh3"]
            want(params == box.golden(mode, world, "checkpoint.every=100000 steps")[0], "other bits")
        except Failed as why:
            raise Failed("trial %d, %s over %d: %s" % (trial, mode, world, why))
        box.clean()
    box.note("killed and begun again at once: %d of %d", n, n)


def one_process(box):
    """single and dp: nothing of the process is left, and it goes on."""
    n = box.trials(3, 100)
    for mode, world in box.some(("single", 1), ("dp", 2)):
        length = box.golden(mode, world)[2]
        for _ in range(n):
            run_dir = box.new_dir()
            job = box.train(mode, world, run_dir)
            if not job.has_ended(box.random.uniform(0, length)):
                job.send(job.pid, signal.SIGKILL)
            job.end((OK, 137))
            box.recovers(job, mode, world, run_dir)
            box.clean()
    box.note("single and dp killed: %d of %d resumed to the golden bits", 2 * n, 2 * n)


def twice(box):
    """F13: killed, and killed again while it recovers, until it is through."""
    for _ in range(box.trials(1, 30)):
        run_dir = box.new_dir()
        length = box.golden("ddp", 2)[2]
        for kill in range(4):
            job = box.train("ddp", 2, run_dir)
            number = box.random.randrange(2)
            job.has_ended(box.random.uniform(0.2, 0.9) * length)
            kill_rank(job, number)
            job.end((OK, 137))
            job.nobody_left()
        box.recovers(job, "ddp", 2, run_dir)
        box.clean()


def any_signal(box):
    """F12: a crash is told as what it was, with the code that a shell would give it."""
    more = ("train.steps=100000", "checkpoint.every=50000 steps", "log.every=50 steps")
    for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGALRM):
        run_dir = box.new_dir()
        job = box.train("ddp", 2, run_dir, *more)
        job.writes(1)
        pid = job.rank(1)
        job.send(pid, number)
        job.end(128 + number)
        line = job.one_error(r"rank 1 \(pid %d\) was killed by signal %d \(%s\)" % (pid, number, number.name))
        want("memory may have run out" not in line, "a crash is told as if memory had run out: %s", line)
        job.nobody_left()
        box.clean()


if __name__ == "__main__":
    fault.main(at_random, as_it_starts, between_steps, in_a_save, at_the_end, the_parent, run_again_at_once,
               one_process, twice, any_signal)
