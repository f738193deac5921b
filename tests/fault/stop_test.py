#!/usr/bin/env python3
"""SIGTERM and SIGINT: the step is finished, a checkpoint saved, status 75, and what goes on ends with the bits of what
was never stopped. A second signal leaves at once."""
import json
import os
import signal
import time

import fault
from fault import OK, STOPPED, Failed, eventually, want

# A step of seconds: time enough for a second signal.
LONG_STEP = ("model.layers=[{linear: 2048}, {linear: 2048}, {linear: 4}]", "data.train.samples=4096",
             "train.batch.global=4096", "model.input=2048", "data.eval=null")


def ended_early(box, job, mode, world, run_dir, code):
    """Status 75 means: a checkpoint of the step that summary and status tell, and the way to go on."""
    step = None
    if code == STOPPED:
        step = fault.summary(run_dir)["step"]
        want(fault.steps_of(run_dir)[-1] == step, "summary.json says step %d, the checkpoints are %s", step,
             fault.steps_of(run_dir))
        with open(os.path.join(fault.checkpoint(run_dir, step), "state.json")) as f:
            want(json.load(f)["step"] == step, "state.json has another step")
        want(fault.metrics(run_dir)[-1]["step"] == step, "metrics.jsonl ends with another step")
        want(fault.summary(run_dir)["exit_reason"] == "stopped", "exit_reason is not stopped")
        with open(os.path.join(run_dir, "status.json")) as f:
            want(json.load(f)["exit_code"] == STOPPED, "status.json has another exit_code")
    want(not job.errors(), "an error is told:\n%s", job.tail())
    box.recovers(job, mode, world, run_dir)


def at_random(box):
    """F15: a signal to the parent, an instant of its life."""
    n, codes, took = box.trials(10, 400), {}, []
    jobs = [("ddp", 2), ("ddp", 3), ("single", 1), ("dp", 2)]
    for trial in range(n):
        mode, world = jobs[trial % len(jobs)]
        box.golden(mode, world)
        line, number = box.random.randrange(0, 50), box.random.choice((signal.SIGTERM, signal.SIGINT))
        run_dir = box.new_dir()
        job = box.train(mode, world, run_dir)
        job.writes(line)
        time.sleep(box.random.uniform(0, 0.01))
        job.send(job.pid, number)
        try:
            # Before the first step there is nothing to save yet, and the signal ends the process as it ends others.
            code, seconds = job.end((OK, STOPPED) if line > 0 else (OK, STOPPED, 128 + number, 128 + signal.SIGTERM))
            ended_early(box, job, mode, world, run_dir, code)
        except Failed as why:
            raise Failed("trial %d, %s of %d, %s after line %d: %s" % (trial, mode, world, number.name, line, why))
        codes[code] = codes.get(code, 0) + 1
        took.append(seconds)
        box.clean()
    box.note("SIGTERM or SIGINT: %d of %d resumed to the golden bits; codes %s; %s", n, n,
             ", ".join("%d: %d times" % pair for pair in sorted(codes.items())), fault.percentiles(took))


def to_one_rank(box):
    """A rank that is asked to stop stops the job: with its next step all learn of it."""
    for number in (0, 1, 2):
        run_dir = box.new_dir()
        job = box.train("ddp", 3, run_dir)
        job.writes(3)
        job.send(job.rank(number), signal.SIGTERM)
        code, _ = job.end((OK, STOPPED))
        ended_early(box, job, "ddp", 3, run_dir, code)
        box.clean()


def to_everybody(box):
    """Ctrl-C and control groups send to every process of the job: that is one wish, not several."""
    for number in (signal.SIGINT, signal.SIGTERM):
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
    pid = job.rank(1)
    if pid is not None:
        job.send(pid, signal.SIGINT)
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
    for mode, world in (("single", 1), ("ddp", 2)):
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
        job = box.train("ddp", 2, run_dir)
        job.writes(1)
        stuck = job.rank(1)
        job.send(stuck, signal.SIGSTOP) # so that no step ends
        job.send(job.pid, number)
        time.sleep(0.6)
        want(not job.has_ended(), "the job ended with a rank stopped:\n%s", job.tail())
        job.send(job.pid, number)
        job.end(128 + number)
        box.recovers(job, "ddp", 2, run_dir)
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
    box.left_clean(job, run_dir)


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
               second_signal, second_signal_in_a_step, short_grace)
