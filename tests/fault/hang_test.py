#!/usr/bin/env python3
"""Ranks that stop answering: the job ends with status 7 after parallel.ddp.heartbeat, or at the latest after
parallel.ddp.timeout, and names who did not come; what is only slow is left alone."""
import ctypes
import json
import os
import signal
import time

import fault
from fault import COMM, OK, want
from restart_test import of_launch

LONG = ("train.steps=100000", "checkpoint.every=50000 steps", "log.every=50 steps", "eval=null")
TIMEOUT = 4.0 # below the heartbeat; a virtual machine may stand still for two seconds


def stopped_rank(box):
    """F17: SIGSTOP of a rank. Nobody waits longer than the timeout; the parent ends the stopped one."""
    took = []
    for world, number in ((2, 1), (2, 0), (3, 1))[:box.trials(3, 3)] * box.trials(1, 10):
        run_dir = box.new_dir()
        job = box.train("ddp", world, run_dir, "parallel.ddp.timeout=%gs" % TIMEOUT, *LONG)
        job.writes(1)
        time.sleep(box.random.uniform(0, 0.02))
        pid = job.rank(number)
        job.send(pid, signal.SIGSTOP)
        _, seconds = job.end(COMM, TIMEOUT + fault.END_SECONDS)
        want(seconds >= TIMEOUT * 0.9, "ended after %.2f s, before the timeout", seconds)
        took.append(seconds - TIMEOUT)
        job.one_error(r"rank \d \(pid \d+\) waited 4000 ms for (rank \d \(pid \d+\)[^,]*, )*rank %d \(pid %d\)" % (number, pid))
        box.left_clean(job, run_dir)
        box.verify(run_dir)
        box.clean()
    box.note("SIGSTOP: %d of %d ended with 7; beyond the timeout: %s", len(took), len(took), fault.percentiles(took))


def frozen_rank(box):
    """F17: no sign of life ends the job long before the timeout, whatever the rank was doing, and names it: in steps, in
    evaluation, in checkpoints, and while the ranks start up."""
    phases = (("train.steps=100000", "eval=null"), ("train.steps=100000", "eval.every=1 steps"),
              ("train.steps=100000", "checkpoint.every=1 steps", "eval=null"))
    took = []
    for trial in range(box.trials(6, 60)):
        world, number = 2 + trial % 2, trial // 2 % 2
        run_dir = box.new_dir()
        job = box.train("ddp", world, run_dir, "parallel.ddp.heartbeat=2s", *phases[trial % 3])
        job.writes(1)
        time.sleep(box.random.uniform(0, 0.02))
        pid = job.rank(number)
        job.send(pid, signal.SIGSTOP)
        _, seconds = job.end(COMM, fault.END_SECONDS)
        took.append(seconds)
        job.one_error(r"rank %d \(pid %d\)(, whose last call was \w+ \d+,)? (has not been heard of|was paused) for \d\.\d s; it is stopped "
                      r"or frozen" % (number, pid))
        box.left_clean(job, run_dir)
        box.verify(run_dir)
        box.clean()
    box.note("SIGSTOP with a heartbeat of 2 s: %d of %d ended with 7 after %s", len(took), len(took), fault.percentiles(took))


def all_stopped(box):
    """The whole job stopped for longer than the heartbeat, parent included, and continued: no alarm, the same bits."""
    run_dir = box.new_dir()
    job = box.train("ddp", 3, run_dir, "parallel.ddp.heartbeat=2s")
    job.writes(1)
    pids = [job.pid] + list(job.ranks().values())
    for pid in pids:
        job.send(pid, signal.SIGSTOP)
    time.sleep(4)
    for pid in pids:
        job.send(pid, signal.SIGCONT)
    job.end(OK, fault.RUN_SECONDS)
    want(fault.summary(run_dir)["params_xxh3"] == box.golden("ddp", 3)[0], "other bits")


def stopped_in_start_up(box):
    """F31: a rank that never joins is named, with the others' patience."""
    run_dir = box.new_dir()
    job = box.train("ddp", 3, run_dir, "parallel.ddp.timeout=%gs" % TIMEOUT, *LONG)
    pid = job.rank(1)
    job.send(pid, signal.SIGSTOP)
    job.end(COMM, TIMEOUT + fault.END_SECONDS)
    job.one_error(r"waited 4000 ms for rank 1")
    job.nobody_left()


def frozen_in_start_up(box):
    """Who has joined knows nothing of a rank that has not; the parent does."""
    for number in (0, 1):
        job = box.train("ddp", 2, box.new_dir(), "parallel.ddp.heartbeat=2s", *LONG)
        pid = job.rank(number)
        job.send(pid, signal.SIGSTOP)
        job.end(COMM)
        job.one_error(r"rank %d \(pid %d\)(, whose last call was \w+ \d+,)? (has not been heard of|was paused) for [1-9]\.\d s; it is "
                      r"stopped or frozen" % (number, pid))
        job.nobody_left()
        box.clean()


def all_frozen(box):
    """Nor is anybody left to look when all ranks are frozen, but for the parent."""
    run_dir = box.new_dir()
    job = box.train("ddp", 2, run_dir, "parallel.ddp.heartbeat=2s", *LONG)
    job.writes(1)
    for pid in job.ranks().values():
        job.send(pid, signal.SIGSTOP)
    job.end(COMM)
    job.one_error(r"rank \d \(pid \d+\)(, whose last call was \w+ \d+,)? (has not been heard of|was paused) for [1-9]\.\d s; it is "
                  r"stopped or frozen")
    with open(run_dir + "/status.json") as f:
        want(json.load(f)["exit_code"] == COMM, "status.json has another exit_code")
    box.left_clean(job, run_dir)


def frozen_alone(box):
    """The one process of a job with --restarts, too: it starts again."""
    run_dir, more = box.new_dir(), ("train.steps=%d" % (8000 if box.options.few else 20000), *LONG[1:])
    job = box.train("single", 1, run_dir, "--restarts", "1", "parallel.ddp.heartbeat=2s", *more)
    job.writes(1)
    for pid in of_launch(job, 0):
        job.send(pid, signal.SIGSTOP)
    job.end(OK, fault.RUN_SECONDS)
    summary = fault.summary(run_dir)
    want(summary["restarts"] == 1, "%d restarts", summary["restarts"])
    want(summary["params_xxh3"] == box.golden("single", 1, *more)[0], "other bits")


def held_by_the_system(box):
    """A rank that not even SIGKILL ends, as in a frozen control group. Here its end is kept from its parent by who
    traces it."""
    seize, libc = 0x4206, ctypes.CDLL(None, use_errno=True)
    run_dir = box.new_dir()
    job = box.train("ddp", 2, run_dir, *LONG)
    job.writes(1)
    pid = job.rank(1)
    if libc.ptrace(seize, pid, None, None) != 0:
        box.note("a rank that cannot be killed: not tried: ptrace: %s", os.strerror(ctypes.get_errno()))
        job.send(job.pid, signal.SIGKILL)
        job.end(137)
        return
    job.send(pid, signal.SIGKILL)
    job.end(COMM, 10 + fault.END_SECONDS)
    job.one_error(r"rank 1 \(pid %d\) is gone" % pid)
    job.told(r"warning: rank 1 \(pid %d\) is still there 10 s after SIGKILL and is left behind" % pid)
    os.waitpid(pid, 0)
    job.nobody_left()
    box.verify(run_dir)


def stopped_and_asked_to_end(box):
    """SIGTERM while a rank is stopped: the wait ends with the timeout, and the job is told as what it is."""
    run_dir = box.new_dir()
    job = box.train("ddp", 2, run_dir, "parallel.ddp.timeout=%gs" % TIMEOUT, *LONG)
    job.writes(1)
    pid = job.rank(1)
    job.send(pid, signal.SIGSTOP)
    job.send(job.pid, signal.SIGTERM)
    job.end(COMM, TIMEOUT + fault.END_SECONDS)
    job.one_error(r"rank 1 \(pid %d\)" % pid)
    box.left_clean(job, run_dir)


def grace(box):
    """SIGTERM while a rank is stopped, and nobody loses patience with it: when parallel.ddp.grace is over it is killed,
    and named with its status; the others are not blamed, for they waited for it."""
    for number in (0, 1):
        run_dir = box.new_dir()
        job = box.train("ddp", 3, run_dir, "parallel.ddp.grace=8s", "parallel.ddp.heartbeat=null", *LONG)
        job.writes(1)
        pid = job.rank(number)
        job.send(pid, signal.SIGSTOP)
        job.send(job.pid, signal.SIGTERM)
        job.end(137, fault.END_SECONDS)
        job.one_error(r"rank %d \(pid %d\) did not stop within 8 s and was killed" % (number, pid))
        with open(run_dir + "/status.json") as f:
            want(json.load(f)["exit_code"] == 137, "status.json has another exit_code")
        box.left_clean(job, run_dir)
        box.clean()


def dead_while_stopped(box):
    """A stopped rank that is killed is gone, not late: that is told at once, whatever the timeout."""
    run_dir = box.new_dir()
    job = box.train("ddp", 2, run_dir, *LONG)
    job.writes(1)
    pid = job.rank(1)
    job.send(pid, signal.SIGSTOP)
    time.sleep(0.3)
    want(not job.has_ended(), "ended before the timeout")
    job.send(pid, signal.SIGKILL)
    job.end(137)
    job.one_error(r"rank 1 \(pid %d\) was killed by signal 9" % pid)
    box.left_clean(job, run_dir)


def stopped_parent(box):
    """The parent only watches: stopped and continued, it changes nothing."""
    run_dir = box.new_dir()
    job = box.train("ddp", 2, run_dir)
    job.writes(1)
    job.send(job.pid, signal.SIGSTOP)
    time.sleep(0.3)
    job.send(job.pid, signal.SIGCONT)
    job.end(OK, fault.RUN_SECONDS)
    want(fault.summary(run_dir)["params_xxh3"] == box.golden("ddp", 2)[0], "other bits")


def short_stops(box):
    """F20, F22: ranks that are stopped for moments and get signals nobody asked for. No false alarm, the same bits."""
    for _ in range(box.trials(2, 40)):
        run_dir = box.new_dir()
        job = box.train("ddp", 3, run_dir)
        stops = 0
        while not job.has_ended():
            pids = list(job.ranks().values())
            if not pids:
                continue
            pid = box.random.choice(pids)
            if box.random.random() < 0.5:
                job.send(pid, signal.SIGSTOP)
                time.sleep(box.random.uniform(0, 0.02))
                job.send(pid, signal.SIGCONT)
                stops += 1
            else:
                job.send(pid, box.random.choice((signal.SIGCHLD, signal.SIGWINCH, signal.SIGURG, signal.SIGCONT)))
                time.sleep(0.001)
        job.end(OK)
        want(fault.summary(run_dir)["params_xxh3"] == box.golden("ddp", 3)[0], "other bits after %d stops", stops)
        want(fault.metrics(run_dir) == box.golden("ddp", 3)[1], "other metrics after %d stops", stops)
        box.clean()


if __name__ == "__main__":
    fault.main(stopped_rank, frozen_rank, all_stopped, stopped_in_start_up, frozen_in_start_up, all_frozen, frozen_alone,
               held_by_the_system, stopped_and_asked_to_end, grace, dead_while_stopped, stopped_parent, short_stops)
