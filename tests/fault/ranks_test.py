#!/usr/bin/env python3
"""Ranks that something else starts, by tandem's own variables and as torchrun does: the same bits as the command's own;
ranks that are missing, too many, contradictory or of another mind end with a verdict before step 1, all of them."""
import json
import os
import signal
import time

import fault
from fault import COMM, CONFIG, OK, STOPPED, USAGE, Failed, want

JOBS = [0]


def port(box):
    """A number that tells this job from others; nothing listens on it."""
    JOBS[0] += 1
    return 20000 + (os.getpid() * 37 + JOBS[0]) % 40000


def torchrun(rank, world, at, **more):
    env = {"RANK": rank, "WORLD_SIZE": world, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": world, "MASTER_ADDR": "127.0.0.1",
           "MASTER_PORT": at, "TORCHELASTIC_RUN_ID": "fault-%d" % os.getpid()}
    env.update(more)
    return {key: str(value) for key, value in env.items() if value is not None}


def own(rank, world, at):
    return {"TANDEM_RANK": str(rank), "TANDEM_WORLD": str(world), "MASTER_PORT": str(at)}


def start(box, world, run_dir, envs, more=None, common=()):
    """One process for each environment; more: arguments of single ones, by place."""
    jobs = []
    for place, env in enumerate(envs):
        extra = (more or {}).get(place, ())
        jobs.append(box.train("ddp", world, run_dir, *common, *extra, env=env))
    return jobs


def same_bits(box):
    """2 and 3 ranks, by either kind of variables, and by each meeting point: the bits of the command's own ranks."""
    for world, kind, meeting in ((2, torchrun, None), (2, own, None), (3, torchrun, "tcp"), (2, torchrun, "file")):
        at, run_dir = port(box), box.new_dir()
        method = {None: (), "tcp": ("parallel.ddp.init_method=tcp://127.0.0.1:%d" % at,),
                  "file": ("parallel.ddp.init_method=file://%s" % box.path("meet"),)}[meeting]
        envs = [kind(rank, world, at) for rank in range(world)]
        if box.random.random() < 0.5: # the order of their start does not matter
            jobs = start(box, world, run_dir, envs[::-1], common=method)
        else:
            jobs = start(box, world, run_dir, envs, common=method)
        for job in jobs:
            job.end(OK, fault.RUN_SECONDS)
        params, lines, _ = box.golden("ddp", world)
        want(fault.summary(run_dir)["params_xxh3"] == params, "other bits than the command's own ranks: %s %s", kind, meeting)
        want(fault.metrics(run_dir) == lines, "other metrics than the command's own ranks: %s %s", kind, meeting)
        for job in jobs:
            job.nobody_left()
        want(not os.path.exists(box.path("meet.tandem")), "the meeting point is left")
        box.verify(run_dir)
        box.clean()


def killed(box):
    """kill -9 of one: the others find out by themselves, and name it."""
    took = []
    for trial in range(box.trials(4, 100)):
        world = 2 + trial % 2
        victim, at, run_dir = box.random.randrange(world), port(box), box.new_dir()
        jobs = start(box, world, run_dir, [torchrun(rank, world, at) for rank in range(world)])
        jobs[0].writes(box.random.randrange(1, 40))
        jobs[victim].send(jobs[victim].pid, signal.SIGKILL)
        code, _ = jobs[victim].end((OK, 137))
        since = time.monotonic()
        for rank, job in enumerate(jobs):
            if rank == victim:
                continue
            other, _ = job.end((OK, COMM))
            if other == COMM:
                took.append(time.monotonic() - since)
                job.one_error(r"rank %d \(pid %d\) is gone" % (victim, jobs[victim].pid) if world == 2 else
                              r"rank %d \(pid %d\)|has left" % (victim, jobs[victim].pid))
            job.nobody_left()
        if code == 137:
            with open(os.path.join(run_dir, "status.json")) as f:
                state = json.load(f)["state"]
            want(state == "failed", "status.json says %s", state)
        box.verify(run_dir)
        box.resumes("ddp", world, run_dir)
        box.clean()
    box.note("kill -9 under another launcher: noticed by the others: %s", fault.percentiles(took))


def signalled(box):
    """SIGTERM to one of them, or to all: all end with 75."""
    for all_of_them in (False, True):
        at, run_dir = port(box), box.new_dir()
        jobs = start(box, 2, run_dir, [torchrun(rank, 2, at) for rank in range(2)])
        jobs[0].writes(3)
        for job in jobs if all_of_them else jobs[1:]:
            job.send(job.pid, signal.SIGTERM)
        codes = {job.end((OK, STOPPED))[0] for job in jobs}
        want(len(codes) == 1, "codes differ: %s", codes)
        box.resumes("ddp", 2, run_dir)
        box.clean()


def signalled_while_they_meet(box):
    """Nothing is under way yet: each leaves at once, with 75 if there is a checkpoint to go on from, else as any other."""
    run_dir = box.new_dir()
    for saved in (False, True):
        if saved:
            box.run(OK, *box.arguments("ddp", 2, run_dir))
        for rank in (0, 1):
            job = box.train("ddp", 2, run_dir, "train.steps=96", env=torchrun(rank, 2, port(box)))
            fault.eventually(lambda: fault.catches(job.pid, signal.SIGHUP), fault.END_SECONDS, "no handler")
            job.send(job.pid, signal.SIGHUP)
            job.end(STOPPED if saved else 128 + signal.SIGHUP)
            want(not job.errors(), "an error is told:\n%s", job.tail())
            job.nobody_left()


def watches(pid):
    """Has it come, so that it looks after the others?"""
    try:
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/comm" % (pid, task)) as f:
                if f.read().strip() == "tandem-watch":
                    return True
    except OSError:
        pass
    return False


def two_of_three(box, *more):
    """Ranks 0 and 1 have come and wait for rank 2: rank 0 lets the others in, rank 1 waits in the shared memory."""
    at = port(box)
    jobs = start(box, 3, box.new_dir(), [torchrun(rank, 3, at) for rank in (0, 1)], common=more)
    for job in jobs:
        fault.eventually(lambda: watches(job.pid), fault.END_SECONDS, "it has not come")
    return jobs


def lost_while_they_meet(box):
    """Nobody waits out the ten minutes of a meeting that cannot be complete: who is signalled leaves at once, and the
    other names who is gone."""
    for victim, number in ((0, signal.SIGKILL), (1, signal.SIGKILL), (0, signal.SIGTERM), (1, signal.SIGTERM)):
        jobs = two_of_three(box)
        jobs[victim].send(jobs[victim].pid, number)
        jobs[victim].end(128 + number)
        other = jobs[1 - victim]
        other.end(COMM)
        other.one_error(r"rank %d \(pid %d\) is gone" % (victim, jobs[victim].pid))
        box.clean()


def frozen_while_they_meet(box):
    """Rank 0 is needed to let the others in."""
    jobs = two_of_three(box, "parallel.ddp.heartbeat=2s")
    jobs[0].send(jobs[0].pid, signal.SIGSTOP)
    jobs[1].end(COMM)
    jobs[1].one_error(r"rank 0 \(pid %d\) has not been heard of for \d\.\d s; it is stopped or frozen" % jobs[0].pid)
    jobs[0].send(jobs[0].pid, signal.SIGKILL)
    jobs[0].end(128 + signal.SIGKILL)
    box.clean()


def missing(box):
    """F31: who is not there is named, after the timeout, by all who wait."""
    for world, there in ((2, (0,)), (2, (1,)), (4, (0, 2))):
        at, run_dir = port(box), box.new_dir()
        jobs = start(box, world, run_dir, [torchrun(rank, world, at) for rank in there], common=("parallel.ddp.timeout=1s",))
        for rank, job in zip(there, jobs):
            _, seconds = job.end(COMM)
            if rank == 0 and len(there) > 1:
                # Another rank that waited longer may give up first: it is then missing, or says so itself.
                job.one_error(r"rank 0 waited 1000 ms for ranks 1, (2, )?3|rank 2.* waited 1000 ms for")
            elif rank == 0:
                job.one_error(r"rank 0 waited 1000 ms for rank 1")
            elif 0 in there:
                job.one_error(r"rank 0|waited 1000 ms")
            else:
                job.one_error(r"rank %d waited 1000 ms for rank 0" % rank)
        want(not fault.steps_of(run_dir), "a checkpoint without all ranks")
        box.clean()


def failed_before(box):
    """A rank that fails before it meets the others tells them, whichever it is: nobody waits out the ten minutes."""
    for world, number in ((2, 1), (3, 0), (4, 2)):
        at, run_dir = port(box), box.new_dir()
        envs = [torchrun(rank, world, at) for rank in range(world)]
        jobs = start(box, world, run_dir, envs, {number: ("optimizer.lr=ten",)})
        for rank, job in enumerate(jobs):
            job.end(CONFIG if rank == number else COMM)
            job.one_error(r"optimizer\.lr must be a number" if rank == number else
                          r"rank %d has (failed|ended): .*optimizer\.lr must be a number" % number)
        box.clean()


def wrong_arguments(box):
    """Nor is one that is started in another way than the others: they learn what is wrong with it."""
    for meeting in (None, "tcp"):
        for wrong, why in ((("--mode", "dp"), r"mode dp is a single process"), (("--bogus",), r"has no flag `--bogus`"),
                           (("--restarts", "3"), r"`--restarts` works only for processes that tandem starts")):
            at = port(box)
            method = ("parallel.ddp.init_method=tcp://127.0.0.1:%d" % at,) if meeting else ()
            if method and wrong == ("--bogus",):
                continue # where they meet has not been read
            jobs = start(box, 2, box.new_dir(), [torchrun(rank, 2, at) for rank in (0, 1)], {1: wrong}, common=method)
            for rank, job in enumerate(jobs):
                job.end(USAGE if rank == 1 else COMM)
                job.one_error(why if rank == 1 else r"rank 1 has (failed|ended): .*" + why)
            box.clean()


def contradictions(box):
    """F30: variables that make no sense are named, with both values. Who knows where the others meet stays a moment to
    tell them, so all start at once, each its own job."""
    base = lambda **more: torchrun(0, 2, port(box), **more)
    cases = [(base(RANK=2), USAGE, r"RANK is 2, but WORLD_SIZE is 2"),
             (base(RANK="one"), USAGE, r"RANK must be an integer .*'one'"),
             (base(RANK=-1), USAGE, r"RANK must be an integer .*'-1'"),
             (base(WORLD_SIZE=0), USAGE, r"WORLD_SIZE must be an integer .*'0'"),
             (base(WORLD_SIZE=None), USAGE, r"RANK is set, but WORLD_SIZE is not|WORLD_SIZE.* is not"),
             (base(RANK=None), USAGE, r"WORLD_SIZE is set, but RANK is not"),
             (base(LOCAL_WORLD_SIZE=3), USAGE, r"LOCAL_WORLD_SIZE is 3, but WORLD_SIZE is 2"),
             (base(LOCAL_RANK=2), USAGE, r"LOCAL_RANK is 2, but LOCAL_WORLD_SIZE is 2"),
             (base(MASTER_PORT=70000), USAGE, r"MASTER_PORT must be an integer .*'70000'"),
             ({"TANDEM_RANK": "3", "TANDEM_WORLD": "2"}, USAGE, r"TANDEM_RANK is 3, but TANDEM_WORLD is 2"),
             ({"TANDEM_RANK": "0", "TANDEM_WORLD": "2", "TANDEM_LAUNCH_FD": "77"}, USAGE, r"TANDEM_LAUNCH_FD|descriptor 77")]
    jobs = [box.start(*box.arguments("ddp", 2, box.new_dir()), env=env) for env, _, _ in cases]
    jobs.append(box.start(*box.arguments("dp", 2, box.new_dir()), env=base()))
    for job, (_, code, pattern) in zip(jobs, cases + [(None, USAGE, r"torchrun")]):
        job.end(code)
        job.one_error(pattern)
    box.clean()


def contradicted_peers(box):
    """The others of a job learn what is wrong with one's variables."""
    for more, why in (({"RANK": 7}, r"rank 7 has failed: .*RANK is 7, but WORLD_SIZE is 2"),
                      ({"RANK": "two"}, r"a rank has failed: .*RANK must be an integer .*'two'"),
                      ({"WORLD_SIZE": None}, r"rank 1 has failed: .*RANK is set, but WORLD_SIZE is not"),
                      ({"WORLD_SIZE": "x"}, r"a rank has failed: .*WORLD_SIZE must be an integer .*'x'"),
                      ({"WORLD_SIZE": 1}, r"rank 1 has (failed|ended): .*RANK is 1, but WORLD_SIZE is 1"),
                      ({"LOCAL_WORLD_SIZE": 3}, r"rank 1 has (failed|ended): .*LOCAL_WORLD_SIZE is 3, but WORLD_SIZE is 2")):
        at = port(box)
        jobs = start(box, 2, box.new_dir(), [torchrun(0, 2, at), torchrun(1, 2, at, **more)])
        for job, code, pattern in zip(jobs, (COMM, USAGE), (why, why.split(": ", 1)[1])):
            job.end(code)
            job.one_error(pattern)
        box.clean()


def of_another_world(box):
    """Two worlds at one meeting point: both learn it."""
    at = port(box)
    for job in start(box, 2, box.new_dir(), [torchrun(0, 2, at), torchrun(1, 3, at)]):
        job.end((USAGE, COMM))
        job.one_error(r"of 3|of 2|3 ranks|2 ranks")


def the_same_twice(box):
    """Two that say they are rank 0."""
    at, run_dir = port(box), box.new_dir()
    first = box.train("ddp", 2, run_dir, "parallel.ddp.timeout=2s", env=torchrun(0, 2, at))
    time.sleep(0.5)
    second = box.train("ddp", 2, box.new_dir(), "parallel.ddp.timeout=2s", env=torchrun(0, 2, at))
    second.end(COMM)
    second.one_error(r"another job is meeting there")
    first.end(COMM)
    first.one_error(r"rank 0 waited 2000 ms for rank 1")


def two_jobs(box):
    """F27: two jobs at once on one port, told apart by their run's name: each gets its own ranks."""
    at, dirs, jobs = port(box), [], []
    for name in ("a", "b"):
        dirs.append(box.new_dir())
        envs = [torchrun(rank, 2, at, TORCHELASTIC_RUN_ID="%s-%d" % (name, os.getpid())) for rank in (1, 0)]
        jobs += start(box, 2, dirs[-1], envs)
    for job in jobs:
        job.end(OK, fault.RUN_SECONDS)
    for run_dir in dirs:
        want(fault.summary(run_dir)["params_xxh3"] == box.golden("ddp", 2)[0], "other bits")


DIFFERENCES = [
    ("seed", ("seed=8",)),
    ("model", ("model.layers=[{linear: 97}, relu, {dropout: 0.25}, {linear: 4}]",)),
    ("model", ("model.layers=[{linear: {name: other, out: 96}}, relu, {dropout: 0.25}, {linear: {name: fc2, out: 4}}]",)),
    ("model", ("model.layers=[{linear: {name: fc1, out: 96}}, relu, {dropout: 0.5}, {linear: {name: fc2, out: 4}}]",)),
    ("optimizer.type", ("optimizer.type=adamw",)),
    ("optimizer.lr", ("optimizer.lr=2e-3",)),
    ("optimizer.betas", ("optimizer.betas=[0.8, 0.99]",)),
    ("optimizer.eps", ("optimizer.eps=1e-7",)),
    ("optimizer.weight_decay", ("optimizer.weight_decay=0.1",)),
    ("optimizer.amsgrad", ("optimizer.amsgrad=true",)),
    ("schedule", ("schedule={type: step, step_size: 10}",)),
    ("train.steps", ("train.steps=50",)),
    ("train.batch", ("train.batch={global: 26}",)),
    ("train.accumulate", ("train.accumulate=2",)),
    ("train.clip_grad_norm", ("train.clip_grad_norm=1",)),
    ("train.clip_grad_value", ("train.clip_grad_value=1",)),
    ("data.train.samples", ("data.train.samples=252",)),
    ("data.train.seed", ("data.train.seed=11",)),
    ("data.eval", ("data.eval.samples=42",)),
    ("data.shuffle", ("data.shuffle=false",)),
    ("data.drop_last", ("data.drop_last=true",)),
    ("loss", ("loss={type: cross_entropy, label_smoothing: 0.1}",)),
    ("loss", ("loss={type: cross_entropy, weight: [1, 2, 1, 1]}",)),
    ("eval.every", ("eval.every=15 steps",)),
    ("checkpoint.every", ("checkpoint.every=5 steps",)),
    ("deterministic", ("deterministic=false",)),
    ("parallel.ddp.broadcast_buffers", ("parallel.ddp.broadcast_buffers=false",)),
    ("parallel.ddp.bucket_cap_mb", ("parallel.ddp.bucket_cap_mb=0.001",)),
    ("parallel.ddp.first_bucket_mb", ("parallel.ddp.first_bucket_mb=0.001",)),
    ("parallel.ddp.find_unused_parameters", ("parallel.ddp.find_unused_parameters=true",)),
    ("parallel.ddp.join", ("parallel.ddp.join=true",)),
    ("parallel.ddp.compress.type", ("parallel.ddp.compress=bf16",)),
    ("parallel.ddp.check_reduction", ("parallel.ddp.check_reduction=true",)),
    ("checkpoint.keep_best", ("checkpoint.keep_best=loss",)),
    ("train.ema.decay", ("train.ema.decay=0.9",)),
    ("train.stop_early.after", ("train.stop_early.after=2",)),
    ("checkpoint.resume", ("checkpoint.resume=never",)),
]


def of_another_mind(box):
    """F44, F45: a rank with one different setting: every rank ends before step 1 and names what differs."""
    chosen = DIFFERENCES if box.options.long else DIFFERENCES[:1] + box.random.sample(DIFFERENCES, 9)
    silent = []
    for what, args in chosen:
        for place in ((1,) if not box.options.long else (0, 1)):
            at, run_dir = port(box), box.new_dir()
            jobs = start(box, 2, run_dir, [torchrun(rank, 2, at) for rank in range(2)], {place: args})
            try:
                for job in jobs:
                    job.end((COMM, CONFIG))
                    job.one_error(r"ranks differ in .*%s" % what.replace(".", r"\."))
                want(not os.path.exists(os.path.join(run_dir, "checkpoints")), "a checkpoint was made")
                lines = fault.metrics(run_dir) if os.path.exists(os.path.join(run_dir, "metrics.jsonl")) else []
                want(not lines, "steps were made")
            except Failed as why:
                silent.append("%s: %s" % (args[0], str(why).splitlines()[0]))
            box.clean()
    want(not silent, "%d of %d differences are not told:\n  %s", len(silent), len(chosen), "\n  ".join(silent))
    box.note("one different setting: %d of %d told by every rank", len(chosen), len(chosen))


def harmless_differences(box):
    """What may differ: where files are, how many loader threads there are, how much is printed."""
    at, run_dir = port(box), box.new_dir()
    for rank in range(2):
        box.train("ddp", 2, run_dir, *(("data.workers=3", "log.progress=never") if rank else ()), env=torchrun(rank, 2, at))
    for job in box.jobs:
        job.end(OK, fault.RUN_SECONDS)
    want(fault.summary(run_dir)["params_xxh3"] == box.golden("ddp", 2)[0], "other bits")


if __name__ == "__main__":
    fault.main(same_bits, killed, signalled, signalled_while_they_meet, lost_while_they_meet, frozen_while_they_meet, missing, failed_before,
               wrong_arguments, contradictions, contradicted_peers, of_another_world, the_same_twice, two_jobs, of_another_mind, harmless_differences)
