#!/usr/bin/env python3
"""`tandem train --restarts N`: whatever dies, the job goes on by itself and ends with the bits of a run to which nothing
happened; it gives up when nothing is gained, and at errors that a restart does not cure."""
import json
import os
import signal
import time

import fault
from fault import CONFIG, OK, STOPPED, USAGE, Failed, eventually, want
from stop_test import LONG_STEP, is_told


def processes(job):
    """What the parent has started, by rank; the one process of single and dp is number 0."""
    try:
        with open("/proc/%d/task/%d/children" % (job.pid, job.pid)) as f:
            pids = [int(text) for text in f.read().split()]
    except OSError:
        return {}
    ranks = {int(fault.variable_of(pid, "TANDEM_RANK") or 0): pid for pid in pids if fault.state_of(pid) not in "ZX"}
    return ranks


def of_launch(job, number):
    """The processes of the first start, of the first restart, ..."""
    return [pid for pid in processes(job).values() if fault.variable_of(pid, "TANDEM_RESTARTS") == str(number)]


def await_one(job, find, what):
    """The first that `find` finds, once it finds any; None if the job ends before. Asked again it may find none: a
    process that turns from one program into the next has no variables for a moment."""
    found = []
    eventually(lambda: found.extend(find()) or found or job.has_ended(), fault.RUN_SECONDS, what)
    return found[0] if found else None


def newest(run_dir):
    return (fault.steps_of(run_dir) or [-1])[-1]


def kill_once(box, job, run_dir, number, waits_for_progress):
    """SIGKILL to a process at a random instant; every other time only when there is a new checkpoint, for a job that
    makes none is given up."""
    step = newest(run_dir)
    if waits_for_progress:
        eventually(lambda: newest(run_dir) > step or job.has_ended(), fault.RUN_SECONDS, "no new checkpoint")
    job.has_ended(box.random.uniform(0, 0.03))
    pid = await_one(job, lambda: [pid for rank, pid in processes(job).items() if rank == number], "rank %d is not there" % number)
    if pid is not None:
        job.send(pid, signal.SIGKILL)
        eventually(lambda: fault.state_of(pid) in "ZX" or pid not in processes(job).values(), fault.END_SECONDS, "lives")
    return pid is not None


def ends_as_golden(box, job, mode, world, run_dir, more):
    params, lines, _ = box.golden(mode, world, *more)
    job.end(OK, fault.RUN_SECONDS)
    came = fault.summary(run_dir)
    want(came["params_xxh3"] == params, "params_xxh3 %s, the run without a fault has %s\n%s", came["params_xxh3"], params,
         job.tail())
    want(fault.metrics(run_dir) == lines, "metrics.jsonl differs from the run's without a fault")
    want(not job.errors(), "errors are told:\n%s", job.tail())
    is_told(run_dir, OK)
    box.left_clean(job, run_dir)
    box.verify(run_dir)
    return came["restarts"]


def at_random(box):
    """C3: kills without a hand on it, several in each run."""
    n, kills, restarts, runs = box.trials(9, 500), 0, 0, 0
    jobs = [("ddp", 2), ("ddp", 3), ("single", 1), ("dp", 2)]
    more = ("train.steps=400", "log.every=20 steps")
    while kills < n:
        mode, world = jobs[runs % len(jobs)]
        box.golden(mode, world, *more)
        run_dir = box.new_dir()
        job = box.train(mode, world, run_dir, *more, "--restarts", "1000")
        for kill in range(min(box.random.randrange(2, 8), n - kills)):
            number = box.random.randrange(world) if mode == "ddp" else 0
            kills += kill_once(box, job, run_dir, number, kill % 2 == 0)
            if job.has_ended():
                break
        try:
            restarts += ends_as_golden(box, job, mode, world, run_dir, more)
        except Failed as why:
            raise Failed("run %d, %s of %d, after %d kills: %s" % (runs, mode, world, kills, why))
        runs += 1
        box.clean()
    box.note("kill -9 with --restarts: %d kills in %d runs, %d restarts, all ended with the golden bits", kills, runs,
             restarts)


def no_progress(box):
    """Two restarts in a row without a new checkpoint are the last."""
    for mode, world in box.some(("single", 1), ("ddp", 2)):
        run_dir = box.new_dir()
        job = box.train(mode, world, run_dir, "train.steps=1000000", "checkpoint.every=900000 steps", "--restarts", "9")
        eventually(lambda: os.path.exists(os.path.join(run_dir, "status.json")) or job.has_ended(), fault.RUN_SECONDS, "no run")
        for launch in range(3):
            pid = await_one(job, lambda: of_launch(job, launch), "it is not started again")
            if pid is not None:
                job.send(pid, signal.SIGKILL)
        job.end(137, fault.RUN_SECONDS)
        job.one_error(r"killed by signal 9 .*giving up after two restarts in a row without a new checkpoint")
        is_told(run_dir, 137)
        with open(os.path.join(run_dir, "status.json")) as f:
            want(json.load(f)["restarts"] == 2, "status.json has another number of restarts")
        job.nobody_left()
        box.clean()


def none_left(box):
    run_dir = box.new_dir()
    job = box.train("ddp", 2, run_dir, "train.steps=1000000", "--restarts", "1")
    for _ in range(2):
        kill_once(box, job, run_dir, 1, True)
    job.end(137, fault.RUN_SECONDS)
    job.one_error(r"rank 1 .* was killed by signal 9 .*no restart is left")
    job.told(r"warning.*rank 1 \(pid \d+\) was killed by signal 9", r"restart 1 from step \d+, 0 left")
    is_told(run_dir, 137)


def unreadable(box):
    """Without a look at the checkpoints nobody knows what a restart would do."""
    run_dir = box.new_dir()
    job = box.train("single", 1, run_dir, "train.steps=1000000", "--restarts", "5")
    job.writes(20)
    checkpoints = os.path.join(run_dir, "checkpoints")
    eventually(lambda: of_launch(job, 0), fault.RUN_SECONDS, "no process")
    job.send(of_launch(job, 0)[0], signal.SIGSTOP)
    os.rename(checkpoints, checkpoints + "-of-old")
    os.symlink("checkpoints", checkpoints)
    job.send(of_launch(job, 0)[0], signal.SIGKILL)
    job.end(137, fault.RUN_SECONDS)
    job.one_error(r"killed by signal 9 .*; the checkpoints of .* cannot be read: Too many levels of symbolic links")
    want("tandem: restart" not in job.err(), "it was started again:\n%s", job.tail())


def never_means_the_first_start(box):
    """--resume never, and the job that is started again goes on all the same; from what it made, not from what was there."""
    for when in (0, 1):
        run_dir = box.new_dir()
        params = box.golden("ddp", 2)[0]
        box.run(OK, *box.arguments("ddp", 2, run_dir, "seed=8"))
        job = box.train("ddp", 2, run_dir, "--resume", "never", "--restarts", "4")
        if when == 0: # as it starts: what lies there is still the other run's
            job.send(job.rank(0, may_have_ended=True), signal.SIGKILL)
        else:
            job.writes(20)
            kill_once(box, job, run_dir, 0, False)
        job.end(OK, fault.RUN_SECONDS)
        want(fault.summary(run_dir)["params_xxh3"] == params, "other bits, killed at %d", when)
        box.clean()


def stopped_meanwhile(box):
    """A signal ends it, restarts or not."""
    for mode, world in box.some(("single", 1), ("ddp", 2)):
        for number in (signal.SIGTERM, signal.SIGHUP):
            run_dir = box.new_dir()
            job = box.train(mode, world, run_dir, "--restarts", "5")
            job.writes(10)
            kill_once(box, job, run_dir, 0, False)
            time.sleep(box.random.uniform(0, 0.03))
            job.send(job.pid, number)
            code, _ = job.end((OK, STOPPED), fault.RUN_SECONDS)
            is_told(run_dir, code)
            box.recovers(job, mode, world, run_dir)
            box.clean()


def not_mended(box):
    """What a restart does not mend ends at once; where there is nothing to go on from it is refused."""
    run_dir = box.new_dir()
    job = box.train("ddp", 2, run_dir, "optimizer={type: sgd, lr: 1e6}", "--restarts", "5")
    job.end(fault.NUMERIC, fault.RUN_SECONDS)
    want("tandem: restart" not in job.err(), "it was started again:\n%s", job.tail())
    is_told(run_dir, fault.NUMERIC)
    box.run(CONFIG, *box.arguments("ddp", 2, box.new_dir(), "optimizer.lr=much", "--restarts", "5"))
    job = box.run(USAGE, "train", box.yaml, "run.dir=null", "--restarts", "5")
    job.told(r"--restarts.*--run-dir")


def to_a_child_alone(box):
    """With nothing to save the status is the signal's own, whoever it was sent to."""
    for number in box.some(signal.SIGHUP, signal.SIGXCPU, signal.SIGTERM):
        for rank in (0, 1):
            job = box.start("train", box.yaml, "train.steps=1000000", "eval=null", "run.dir=null")
            pid = job.rank(rank)
            eventually(lambda: fault.catches(pid, number) or job.has_ended(), fault.RUN_SECONDS, "no handler")
            job.send(pid, number)
            job.end(128 + number)
            want(not job.errors(), "an error is told:\n%s", job.tail())
            box.clean()
        run_dir = box.new_dir()
        job = box.train("single", 1, run_dir, *LONG_STEP, "--restarts", "1")
        pid = await_one(job, lambda: of_launch(job, 0), "no process")
        eventually(lambda: fault.catches(pid, number) or job.has_ended(), fault.RUN_SECONDS, "no handler")
        job.send(pid, number)
        code, _ = job.end((128 + number, STOPPED))
        is_told(run_dir, code)
        box.clean()


if __name__ == "__main__":
    fault.main(at_random, no_progress, none_left, unreadable, never_means_the_first_start, stopped_meanwhile, not_mended,
               to_a_child_alone)
