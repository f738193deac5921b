#!/usr/bin/env python3
"""Few descriptors, little memory, no threads, kernels without a call: the job ends with a code of the table and one
sentence, or does its work. Never a crash, a wait, or something left behind."""
import resource

import fault
from fault import COMM, IO, MEMORY, OK, Failed, want

# All of the table, none of them a signal. DATA: a file cannot be opened; 1: a thing that never fails did.
CODES = (OK, 1, fault.DATA, MEMORY, COMM, IO)


def judged(box, mode, world, what, allowed=CODES, more=(), **how):
    run_dir = box.new_dir()
    job = box.train(mode, world, run_dir, *more, **how)
    try:
        code, _ = job.end(allowed, fault.RUN_SECONDS)
        box.left_clean(job, run_dir)
        if code == OK:
            want(fault.summary(run_dir)["params_xxh3"] == box.golden(mode, world, *more)[0], "other bits")
        else:
            want(job.errors(), "code %d without a word\n%s", code, job.tail())
        box.verify(run_dir)
    except Failed as why:
        raise Failed("%s, %s: %s" % (what, mode, why))
    box.clean()
    return code


def few_descriptors(box):
    """F25: ulimit -n from almost none to enough."""
    codes = {}
    for limit in list(range(4, 40)) if box.options.long else box.random.sample(range(4, 40), 8):
        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

        for mode, world in (("single", 1), ("ddp", 2)):
            code = judged(box, mode, world, "ulimit -n %d" % limit, limits=few)
            codes[code] = codes.get(code, 0) + 1
    box.note("codes: %s", ", ".join("%d: %d times" % pair for pair in sorted(codes.items())))


def little_memory(box):
    """ulimit -v from almost none to enough. Below what the loader of programs needs, it speaks, with 127. Reference
    kernels, because oneDNN itself does not survive that it gets no memory for the code it makes."""
    codes = {}
    sizes = range(8, 400, 8) if box.options.long else box.random.sample(range(8, 400, 8), 6)
    for size in sizes:
        def little():
            resource.setrlimit(resource.RLIMIT_AS, (size << 20, size << 20))

        for mode, world in (("single", 1), ("ddp", 2), ("dp", 2)):
            code = judged(box, mode, world, "ulimit -v %d MiB" % size, CODES + (127,), ("parallel.kernels=ref",), limits=little)
            codes[code] = codes.get(code, 0) + 1
    box.note("codes: %s", ", ".join("%d: %d times" % pair for pair in sorted(codes.items())))


CALLS = [("clone,clone3", "EAGAIN", 8), ("memfd_create", "EMFILE", 2), ("ftruncate", "EIO", 3),
         ("pipe2", "EMFILE", 2), ("flock", "EAGAIN", 2), ("getdents64", "EIO", 3),
         ("sched_getaffinity", "EPERM", 3), ("fcntl", "EINVAL", 6)]


def failing_calls(box):
    """The n-th call of a kind fails in each process of the job."""
    if not fault.can_trace():
        raise fault.Skipped("processes cannot be traced")
    count, codes = 0, {}
    for call, error, most in CALLS:
        for n in range(1, most + 1) if box.options.long else box.random.sample(range(1, most + 1), 1):
            mode, world = box.random.choice((("single", 1), ("ddp", 2)))
            wrap = fault.strace("trace=" + call, "inject=%s:error=%s:when=%d" % (call, error, n))
            code = judged(box, mode, world, "%s number %d: %s" % (call, n, error), CODES + (127,), wrap=wrap)
            codes[code] = codes.get(code, 0) + 1
            count += 1
    box.note("failing calls: %d; codes: %s", count, ", ".join("%d: %d times" % pair for pair in sorted(codes.items())))


def missing_calls(box):
    """Older kernels and sandboxes lack calls that there are other ways for."""
    if not fault.can_trace():
        raise fault.Skipped("processes cannot be traced")
    for call, error in (("pidfd_open", "ENOSYS"), ("pidfd_open", "EPERM"), ("renameat2", "ENOSYS"), ("renameat2", "EINVAL"),
                        ("fallocate", "EOPNOTSUPP"), ("memfd_create", "ENOSYS"), ("flock", "ENOLCK"), ("getrandom", "ENOSYS"),
                        ("madvise", "EINVAL"), ("rseq", "ENOSYS"), ("sched_setaffinity", "EPERM")):
        wrap = fault.strace("trace=" + call, "inject=%s:error=%s" % (call, error))
        allowed = (OK,) if call not in ("memfd_create", "fallocate", "flock") else (OK, COMM, MEMORY, IO)
        for mode, world in (("ddp", 2),):
            judged(box, mode, world, "%s: %s" % (call, error), allowed, wrap=wrap)


if __name__ == "__main__":
    fault.main(few_descriptors, little_memory, failing_calls, missing_calls)
