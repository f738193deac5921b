#!/usr/bin/env python3
"""Signals that ask for an end: the step is finished, a checkpoint saved, status 75, and what goes on ends with the bits of what
was never stopped. A second signal leaves at once."""
import contextlib
import fcntl
import json
import os
import re
import signal
import sys
import time

import fault
from fault import OK, STOPPED, Failed, eventually, want

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU)

# A step of seconds: time enough for a second signal.
LONG_STEP = ("model.layers=[{linear: 2048}, {linear: 2048}, {linear: 4}]", "data.train.samples=4096",
             "train.batch.global=4096", "model.input=2048", "data.eval=null")


def status_of(run_dir):
    path = os.path.join(run_dir, "status.json")
    if not os.path.exists(path):
        return None
    with open(path) as f:
        return json.load(f)


def is_told(run_dir, code):
    """status.json says how the job ended, whoever had to write it."""
    status = status_of(run_dir)
    state = {OK: "finished", STOPPED: "stopped"}.get(code, "killed" if code > 128 else "failed")
    want(status is not None, "no status.json after code %d", code)
    want((status["state"], status["exit_code"]) == (state, code), "code %d, and status.json says %s", code, status)


def ended_early(box, job, mode, world, run_dir, code):
    """Status 75 means: a checkpoint of the step that summary and status tell, and the way to go on. A signal's own status
    means that there was nothing to save."""
    if code == STOPPED:
        step = fault.summary(run_dir)["step"]
        want(fault.steps_of(run_dir)[-1] == step, "summary.json says step %d, the checkpoints are %s", step,
             fault.steps_of(run_dir))
        with open(os.path.join(fault.checkpoint(run_dir, step), "state.json")) as f:
            want(json.load(f)["step"] == step, "state.json has another step")
        want(fault.metrics(run_dir)[-1]["step"] == step, "metrics.jsonl ends with another step")
        want(fault.summary(run_dir)["exit_reason"] == "stopped", "exit_reason is not stopped")
    if code > 128:
        want(not fault.steps_of(run_dir), "code %d, and there are checkpoints: %s", code, fault.steps_of(run_dir))
    if code != OK:
        want(not job.out() or code == STOPPED, "results of a run that was not made:\n%s", job.out())
    if os.path.isdir(run_dir):
        is_told(run_dir, code)
    want(not job.errors(), "an error is told:\n%s", job.tail())
    box.recovers(job, mode, world, run_dir)


PHASES = ("start", "line", "resume", "line", "evaluation", "end")


def reach(box, job, phase, length, run_dir):
    """An instant of that part of the job's life; a whole one takes `length` seconds."""
    if phase in ("start", "resume"):
        job.has_ended(box.random.uniform(0, length / 2))
    elif phase == "line":
        job.writes(box.random.randrange(1, 50))
        time.sleep(box.random.uniform(0, 0.01))
    elif phase == "evaluation":
        job.writes(box.random.choice((16, 33, 50))) # the line of the step before one
    else:
        last = fault.checkpoint(run_dir, 48)
        eventually(lambda: os.path.isdir(last) or job.has_ended(), fault.RUN_SECONDS, "no last checkpoint")
        time.sleep(box.random.uniform(0, 0.004))


def at_random(box):
    """F15: a signal to the parent, at an instant of each part of its life, in each mode."""
    n, codes, took = box.trials(18, 1000), {}, []
    jobs = [("ddp", 2), ("single", 1), ("ddp", 3), ("dp", 2)]
    for trial in range(n):
        mode, world = jobs[trial % len(jobs)]
        number, phase = SIGNALS[trial % len(SIGNALS)], box.random.choice(PHASES)
        length = box.golden(mode, world)[2]
        run_dir = box.new_dir()
        if phase == "resume":
            job = box.train(mode, world, run_dir)
            job.writes(20)
            job.send(job.pid, signal.SIGTERM)
            job.end((OK, STOPPED))
        job = box.train(mode, world, run_dir)
        reach(box, job, phase, length, run_dir)
        too_early = not fault.catches(job.pid, number)
        job.send(job.pid, number)
        try:
            code, seconds = job.end((OK, STOPPED, 128 + number))
            if code > 128 and too_early:
                box.recovers(job, mode, world, run_dir)
            else:
                ended_early(box, job, mode, world, run_dir, code)
        except Failed as why:
            raise Failed("trial %d, %s of %d, %s at %s: %s" % (trial, mode, world, number.name, phase, why))
        codes[number.name, code] = codes.get((number.name, code), 0) + 1
        took.append(seconds)
        box.clean()
    box.note("signals: %d of %d resumed to the golden bits; %s; %s", n, n,
             ", ".join("%s %d: %d times" % (*key, codes[key]) for key in sorted(codes)), fault.percentiles(took))


def to_one_rank(box):
    """A rank that is asked to stop stops the job: with its next step all learn of it."""
    for number, kind in ((0, signal.SIGTERM), (1, signal.SIGHUP), (2, signal.SIGTERM)):
        run_dir = box.new_dir()
        job = box.train("ddp", 3, run_dir)
        job.writes(3)
        job.send(job.rank(number, may_have_ended=True), kind)
        code, _ = job.end((OK, STOPPED))
        ended_early(box, job, "ddp", 3, run_dir, code)
        box.clean()


def to_everybody(box):
    """Ctrl-C and control groups send to every process of the job: that is one wish, not several."""
    for number in box.some(*SIGNALS):
        run_dir = box.new_dir()
        job = box.train("ddp", 2, run_dir, limits=os.setpgrp)
        job.writes(2)
        os.killpg(job.pid, number)
        code, _ = job.end((OK, STOPPED))
        ended_early(box, job, "ddp", 2, run_dir, code)
        box.clean()


def interrupt_of_a_rank(box):
    """Ctrl-C is the parent's business: a rank alone does not heed it."""
    run_dir = box.new_dir()
    job = box.train("ddp", 2, run_dir)
    job.writes(2)
    job.send(job.rank(1, may_have_ended=True), signal.SIGINT)
    job.end(OK, fault.RUN_SECONDS)
    want(fault.summary(run_dir)["params_xxh3"] == box.golden("ddp", 2)[0], "other bits")


def at_the_end(box):
    """F09: when the last checkpoint is saved the job is done, whatever signal comes."""
    for trial in range(box.trials(4, 100)):
        mode, world = (("ddp", 2), ("single", 1))[trial % 2]
        run_dir = box.new_dir()
        job = box.train(mode, world, run_dir)
        last = fault.checkpoint(run_dir, 48)
        eventually(lambda: os.path.isdir(last) or job.has_ended(), fault.RUN_SECONDS, "no last checkpoint")
        time.sleep(box.random.uniform(0, 0.004))
        job.send(job.pid, signal.SIGTERM)
        job.end(OK)
        want(fault.summary(run_dir)["exit_reason"] == "finished", "the run is not finished")
        box.recovers(job, mode, world, run_dir)
        box.clean()


def evaluation_that_is_due(box):
    """It is left to whoever goes on: the stop is quick, and metrics.jsonl tells of it once. What is logged stays even."""
    more = ("eval.every=1 steps", "log.every=5 steps")
    for mode, world in box.some(("single", 1), ("ddp", 2)):
        run_dir = box.new_dir()
        job = box.train(mode, world, run_dir, *more, "data.eval.samples=4000")
        job.writes(3)
        job.send(job.pid, signal.SIGTERM)
        job.end(STOPPED)
        step = fault.summary(run_dir)["step"]
        with open(os.path.join(fault.checkpoint(run_dir, step), "state.json")) as f:
            want(json.load(f).get("eval_due") == 1, "state.json does not tell of the evaluation that is due")
        want(not any(line["kind"] == "eval" and line["step"] == step for line in fault.metrics(run_dir)),
             "the evaluation of step %d was made", step)
        if mode == "ddp": # the evaluation was made by one who was killed before his next checkpoint
            with open(os.path.join(run_dir, "metrics.jsonl"), "a") as f:
                f.write('{"kind":"eval","step":%d,"loss":0,"accuracy":0}\n' % step)
        box.recovers(job, mode, world, run_dir, *more, "data.eval.samples=4000")
        box.clean()


def second_signal(box):
    """Two signals apart: at once, with 128+n, and nobody is left. The checkpoints stay whole."""
    for number in (signal.SIGTERM, signal.SIGINT):
        run_dir = box.new_dir()
        job = box.train("ddp", 2, run_dir, "train.steps=1000000", "eval=null")
        job.writes(1)
        job.send(job.rank(1), signal.SIGSTOP) # so that no step ends
        job.send(job.pid, number)
        time.sleep(0.6)
        want(not job.has_ended(), "the job ended with a rank stopped:\n%s", job.tail())
        job.send(job.pid, number)
        job.end(128 + number)
        is_told(run_dir, 128 + number)
        want(status_of(run_dir)["reason"] == "exited at once, by signal %d" % number, "status.json says %s", status_of(run_dir))
        box.left_clean(job, run_dir)
        box.verify(run_dir)
        box.clean()


def second_signal_in_a_step(box):
    run_dir = box.new_dir()
    job = box.start(*box.arguments("single", 1, run_dir, *LONG_STEP, "train.steps=1000"))
    eventually(lambda: os.path.exists(os.path.join(run_dir, "status.json")), fault.RUN_SECONDS, "no status.json")
    time.sleep(0.3)
    job.send(job.pid, signal.SIGTERM)
    time.sleep(0.5)
    job.send(job.pid, signal.SIGTERM)
    code, _ = job.end((143, STOPPED))
    is_told(run_dir, code)
    box.left_clean(job, run_dir)


def killed_behind_a_checkpoint(box):
    """status.json tells its step, though the last heartbeat is older."""
    for mode, world in box.some(("single", 1), ("ddp", 2)):
        run_dir = box.new_dir()
        job = box.train(mode, world, run_dir, "train.steps=1000000", "data.eval=null", "checkpoint.every=10 steps")
        eventually(lambda: fault.steps_of(run_dir)[-1:] >= [20] or job.has_ended(), fault.RUN_SECONDS, "no checkpoint of step 20")
        job.send(job.pid, signal.SIGKILL)
        job.end(137)
        job.nobody_left()
        want(status_of(run_dir)["step"] >= 10, "status.json says %s", status_of(run_dir))
        box.clean()


def killed_for_not_stopping(box):
    """All who had to be are named."""
    job = box.train("ddp", 3, box.new_dir(), "train.steps=1000000", "eval=null", "parallel.ddp.heartbeat=null",
                    "parallel.ddp.grace=3s")
    job.writes(1)
    first, last = job.rank(0), job.rank(2)
    job.send(first, signal.SIGSTOP)
    job.send(last, signal.SIGSTOP)
    job.send(job.pid, signal.SIGTERM)
    job.end(137)
    job.one_error(r"rank 0 \(pid %d\).*, rank 2 \(pid %d\) did not stop within 3 s and were killed" % (first, last))
    job.nobody_left()


def evaluation_under_way(box):
    """A long one is left to whoever goes on, by all ranks."""
    more = ("data.eval.samples=%d" % box.some(60000, 20000)[0], "eval.every=8 steps", "train.steps=16")
    for mode, world in box.some(("single", 1), ("ddp", 2)):
        run_dir = box.new_dir()
        box.golden(mode, world, *more)
        job = box.train(mode, world, run_dir, *more)
        job.writes(8)
        job.send(job.pid, signal.SIGTERM)
        job.end(STOPPED)
        want(fault.steps_of(run_dir)[-1] == 8, "stopped after step %d", fault.steps_of(run_dir)[-1])
        with open(os.path.join(fault.checkpoint(run_dir, 8), "state.json")) as f:
            want(json.load(f).get("eval_due") == 1, "state.json does not tell of the evaluation that is due")
        want(len(fault.metrics(run_dir)) == 8, "the evaluation was made")
        box.recovers(job, mode, world, run_dir, *more)
        box.clean()


def ignored_hangup(box):
    """nohup: no terminal is missed."""
    run_dir = box.new_dir()
    job = box.train("ddp", 2, run_dir, wrap=("nohup",))
    job.writes(3)
    job.send(job.pid, signal.SIGHUP)
    job.end(OK, fault.RUN_SECONDS)
    want(fault.summary(run_dir)["params_xxh3"] == box.golden("ddp", 2)[0], "other bits")


def reader_has_gone(box):
    """`| head`: training goes on, its output is dropped."""
    pipe = ("bash", "-c", '"$@" 2>&1 | head -n 1 >/dev/null; exit "${PIPESTATUS[0]}"', "-")
    for mode, world in box.some(("single", 1), ("dp", 2), ("ddp", 2)):
        run_dir = box.new_dir()
        box.train(mode, world, run_dir, wrap=pipe).end(OK, fault.RUN_SECONDS)
        want(fault.summary(run_dir)["params_xxh3"] == box.golden(mode, world)[0], "other bits in %s", mode)
        is_told(run_dir, OK)
        box.clean()


ENDLESS = ("train.steps=1000000", "log.every=1 steps", "data.eval=null", "checkpoint.every=100000 steps",
           "parallel.ddp.grace=60s")


@contextlib.contextmanager
def narrow_pipe():
    """Holds one page, and nobody reads it."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    try:
        yield reader, writer
    finally:
        os.close(reader)
        os.close(writer)


def reader_who_stops_reading(box):
    """`| less` that is left alone, Ctrl-S: training goes on, and ends as it is asked to."""
    for mode, world in box.some(("single", 1), ("dp", 2), ("ddp", 2)):
        for more in box.some((), ("--restarts", "1")):
            with narrow_pipe() as (_, writer):
                run_dir = box.new_dir()
                job = box.train(mode, world, run_dir, *ENDLESS, *more, pipe=writer)
                job.writes(300) # lines of progress of twice as many bytes as the pipe holds, and more
                job.send(job.pid, signal.SIGTERM)
                job.end(STOPPED)
                is_told(run_dir, STOPPED)
                box.left_clean(job, run_dir)
                with open(os.path.join(run_dir, "logs", "rank-0.log")) as f:
                    want(re.search(r"\d+ lines dropped from stderr", f.read()), "the log does not tell of the lines")
            box.clean()


def reader_who_stops_reading_in_the_end(box):
    """The summary of a run is in its folder; where there is no folder it waits until it is read, or a signal comes."""
    for mode, world in box.some(("single", 1), ("ddp", 2)):
        with narrow_pipe() as (_, writer):
            os.write(writer, b"x" * 4096)
            run_dir = box.new_dir()
            box.train(mode, world, run_dir, pipe=writer).end(OK)
            is_told(run_dir, OK)
            job = box.start("train", box.yaml, "parallel.mode=" + mode, "parallel.device_ids=%s" % list(range(world)),
                            "run.dir=null", pipe=writer)
            want(not job.has_ended(3), "results that are nowhere else are given up")
            job.send(job.pid, signal.SIGTERM)
            job.end(143)
        box.clean()


def shown_steps(text, last):
    """Every line of progress up to `last` is there, or counted where it would have been. How many were left out."""
    step = missing = 0
    for line in text.splitlines():
        told = re.search(r"warning: (\d+) lines? dropped here", line)
        shown = re.match(r"step (\d+)/", line)
        if told:
            missing += int(told[1])
            step += int(told[1])
        elif shown:
            step += 1
            want(int(shown[1]) == step, "a line of step %s, wanted %d", shown[1], step)
    want(last is None or step == last, "the lines end with step %d", step)
    return missing


def reader_who_reads_on(box):
    """What is left out is told where it would have been."""
    with narrow_pipe() as (reader, writer):
        os.set_blocking(reader, False)
        job = box.train("single", 1, box.new_dir(), *ENDLESS, pipe=writer)
        job.writes(300)
        text = b""
        while b"dropped here" not in text and not job.has_ended():
            with contextlib.suppress(BlockingIOError):
                text += os.read(reader, 4096)
        job.send(job.pid, signal.SIGTERM)
        job.end(STOPPED)
        want(shown_steps(text[:text.rindex(b"\n")].decode(), None) > 0, "nothing was left out")


def reader_who_is_slow(box):
    """He misses nothing, unless this test itself was held up."""
    with narrow_pipe() as (reader, writer):
        os.set_blocking(reader, False)
        job = box.train("single", 1, box.new_dir(), *ENDLESS, "train.steps=400", pipe=writer)
        text, longest, before = b"", 0, time.monotonic()
        while not job.has_ended(0.005):
            with contextlib.suppress(BlockingIOError):
                text += os.read(reader, 1000)
            now = time.monotonic()
            longest, before = max(longest, now - before), now
        with contextlib.suppress(BlockingIOError):
            text += os.read(reader, 65536)
        job.end(OK)
    missing = shown_steps(text.decode(), 400)
    want(missing == 0 or longest > 0.1, "%d lines are missing, and nobody waited for longer than %.2f s", missing, longest)


# Starts the command on a terminal of its own, and takes that away when there are five lines of metrics.
TERMINAL = """
import os, pty, sys, time
path, command = sys.argv[1], sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(command[0], command)
os.set_blocking(terminal, False)
while not (os.path.exists(path) and open(path, "rb").read().count(b"\\n") >= 5):
    try:
        os.read(terminal, 65536)
    except BlockingIOError:
        time.sleep(0.001)
os.close(terminal)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def terminal_is_closed(box):
    """The hangup that a shell's end sends to everybody in front of it."""
    for mode, world in box.some(("single", 1), ("ddp", 2)):
        run_dir = box.new_dir()
        box.golden(mode, world)
        wrap = (sys.executable, "-c", TERMINAL, os.path.join(run_dir, "metrics.jsonl"))
        job = box.train(mode, world, run_dir, wrap=wrap)
        code, _ = job.end((OK, STOPPED), fault.RUN_SECONDS)
        is_told(run_dir, code)
        box.recovers(job, mode, world, run_dir)
        box.clean()


def short_grace(box):
    """F16: SIGTERM, and SIGKILL a moment later, as a batch system does."""
    for _ in range(box.trials(2, 60)):
        run_dir = box.new_dir()
        job = box.train("ddp", 2, run_dir)
        job.writes(box.random.randrange(1, 40))
        job.send(job.pid, signal.SIGTERM)
        job.has_ended(box.random.uniform(0, 0.02))
        job.send(job.pid, signal.SIGKILL)
        job.end((OK, STOPPED, 137))
        box.recovers(job, "ddp", 2, run_dir)
        box.clean()


if __name__ == "__main__":
    fault.main(at_random, to_one_rank, to_everybody, interrupt_of_a_rank, at_the_end, evaluation_that_is_due,
               evaluation_under_way, second_signal, second_signal_in_a_step, killed_behind_a_checkpoint,
               killed_for_not_stopping, ignored_hangup, reader_has_gone,
               reader_who_stops_reading, reader_who_stops_reading_in_the_end, reader_who_reads_on, reader_who_is_slow, terminal_is_closed, short_grace)
