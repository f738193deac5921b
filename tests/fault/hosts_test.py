#!/usr/bin/env python3
"""Several hosts, here all this machine. `tandem launch`: a rank that dies before it has come to the meeting is named on all, and
nobody waits for it; with restarts the job goes on. mpirun: the ranks end by themselves."""
import os
import re
import shutil
import signal
import subprocess

import fault
from fault import COMM, OK, Skipped, eventually, want

KILLED = 128 + signal.SIGKILL


def two_hosts(box, held, locals_, victim, *more):
    """The launchers of both hosts; the victim is held where it would come."""
    port = 20000 + (os.getpid() * 37 + len(box.jobs)) % 40000
    env = {"LD_PRELOAD": os.environ["HELD_MEETING"], "HELD_RANK": str(victim), "HELD_FILE": held}
    return [box.start("launch", box.yaml, "--nnodes", "2", "--node-rank", str(host), "--master-addr", "127.0.0.1", "--master-port",
                      str(port), "--nproc-per-node", str(locals_), "--run-dir", box.new_dir(), *more, env=env) for host in range(2)]


def kill_before_it_comes(victim, jobs, host):
    """When all others have come: rank 0 says so."""
    eventually(lambda: re.search(r"rank 0 has waited \d+ s for rank %d\n" % victim, jobs[0].err()) or
               any(job.has_ended() for job in jobs), fault.RUN_SECONDS, jobs[0].tail)
    pid = jobs[host].rank(victim)
    jobs[host].send(pid, signal.SIGKILL)
    return pid


def lost_before_it_comes(box):
    cases = ((2, 1), (2, 2), (2, 3), (1, 1))
    started = [(victim, two_hosts(box, box.path("run-held-%d" % place), locals_, victim), victim // locals_)
               for place, (locals_, victim) in enumerate(cases)]
    for victim, jobs, host in started:
        pid = kill_before_it_comes(victim, jobs, host)
        for place, job in enumerate(jobs):
            job.end(KILLED if place == host else COMM)
            job.nobody_left()
        jobs[host].one_error(r"rank %d \(pid %d\) was killed by signal 9" % (victim, pid))
        jobs[1 - host].one_error(r"meeting at 127\.0\.0\.1:\d+: rank %d has failed: its process \(host .*, pid %d\) was killed by "
                                 r"signal 9" % (victim, pid))


def starts_again(box):
    """With restarts both hosts begin again, and the job ends as if nothing had happened."""
    jobs = two_hosts(box, box.path("run-held"), 2, 2, "--restarts", "2")
    kill_before_it_comes(2, jobs, 1)
    for job in jobs:
        job.end(OK, fault.RUN_SECONDS)
        job.nobody_left()
    run_dir = jobs[0].args[jobs[0].args.index("--run-dir") + 1]
    want(fault.summary(run_dir)["params_xxh3"] == box.golden("ddp", 4)[0], "other bits than one host's")


def of_mpirun(job):
    """The ranks that mpirun has started."""
    ranks = {fault.variable_of(pid, "OMPI_COMM_WORLD_RANK"): pid for pid in fault.marked(job.mark) if pid != job.pid}
    return {int(rank): pid for rank, pid in ranks.items() if rank is not None}


def ends_while_mpirun_hears_nothing(box):
    """A rank dies over MPI's TCP, and mpirun, to which Open MPI would tell that, is stopped: the other rank ends all the same."""
    mpirun = shutil.which("mpirun")
    if not mpirun or not os.path.exists(os.path.join(os.environ["TANDEM_MODULE_PATH"], "libtandem-mpi.so")):
        raise Skipped("no mpirun, or no module mpi")
    if "Open MPI" not in subprocess.run((mpirun, "--version"), stdout=subprocess.PIPE, text=True).stdout:
        raise Skipped("mpirun is not Open MPI's")
    run_dir = box.new_dir()
    job = box.train("ddp", 2, run_dir, "parallel.ddp.backend=mpi", "train.steps=100000000",
                    wrap=(mpirun, "--oversubscribe", "-np", "2", "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo"),
                    env={"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    job.writes(3)
    pids = of_mpirun(job)
    want(len(pids) == 2, "the ranks are %s\n%s", pids, job.tail())
    job.send(job.pid, signal.SIGSTOP)
    job.send(pids[1], signal.SIGKILL)
    eventually(lambda: fault.state_of(pids[0]) in "ZX", fault.END_SECONDS, "rank 0 has not ended")
    job.send(job.pid, signal.SIGCONT)
    job.end()
    job.told(r"rank 1 \(host .*, pid %d\) is gone" % pids[1])
    job.nobody_left()


if __name__ == "__main__":
    if not os.path.exists(os.path.join(os.environ.get("TANDEM_MODULE_PATH", ""), "libtandem-gloo.so")):
        print("skipped: the module gloo is not built")
        raise SystemExit(77)
    fault.main(lost_before_it_comes, starts_again, ends_while_mpirun_hears_nothing)
