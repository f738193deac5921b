"""PyTorch's side of steps.py: the states of a run in float32, and what one step makes of each in float64 and, for the
measure of how far rounding goes, in float32 on other kernels and from weights that differ in their last bits."""
import torch

import cases
import steps
import torch_side


class Player:
    """Models and optimizers of one dtype that take a single step from any state."""

    def __init__(self, case, mode, world, scatter, dtype):
        self.job, self.dtype = (case, mode, world, scatter), dtype
        self.models = [torch_side.net_of(case, 0, dtype) for _ in range(world if mode == "ddp" else 1)]
        self.opts = [torch_side.optimizer(case, m.parameters()) for m in self.models]
        kind = cases.CASES[case]["optimizer"]
        self.slots = ["exp_avg", "exp_avg_sq"] if kind["type"] != "sgd" else ["momentum_buffer"] * ("momentum" in kind)

    def put(self, state, taken, settings):
        """`taken` steps have been taken; the optimizer's settings are those of the schedule."""
        for model, opt in zip(self.models, self.opts):
            for mine, given in zip([*model.parameters(), *model.buffers()], state["model"]):
                mine.data.copy_(given)
            opt.param_groups[0].update(settings)
            opt.state.clear()
            for i, p in enumerate(model.parameters() if taken else []):
                opt.state[p] = {slot: state[slot][i].to(self.dtype).clone() for slot in self.slots}
                if "exp_avg" in self.slots:
                    opt.state[p]["step"] = torch.tensor(float(taken))

    def get(self):
        model, opt = self.models[0], self.opts[0]
        out = {"model": [t.detach().clone() for t in [*model.parameters(), *model.buffers()]]}
        for slot in self.slots:
            known = [opt.state[p].get(slot) for p in model.parameters()]
            out[slot] = [torch.zeros_like(p) if t is None else t.clone() for t, p in zip(known, model.parameters())]
        return out

    def step(self, parts, x, y):
        """Returns the loss."""
        case, mode, world, scatter = self.job
        for opt in self.opts:
            opt.zero_grad()
        loss = torch_side.backward(case, mode, world, scatter, self.models, torch_side.criterion(case), parts, x, y)
        for model, opt in zip(self.models, self.opts):
            torch_side.update(case, model, opt, None)
        return loss

    def settings(self):
        return {k: v for k, v in self.opts[0].param_groups[0].items() if k in ("lr", "betas", "momentum")}


def flat(state):
    return [t for group in state.values() for t in group]


def blob(state):
    return b"".join(t.to(torch.float32 if t.is_floating_point() else t.dtype).contiguous().numpy().tobytes() for t in flat(state))


def far(a, b):
    return (a.double() - b.double()).norm().item()


def floors(before, after):
    """For each tensor the distance below which nothing is said: 1e-6 of what it is made of (parameters: of how they
    moved; a tensor of moments: at least a thousandth of the largest, since what cancels is rounding alone), and one
    rounding of its numbers."""
    out = []
    for group in after:
        most = max((t.double().norm().item() for t in after[group] if t.is_floating_point()), default=0.0)
        for old, new in zip(before[group], after[group]):
            size = new.double().norm().item()
            made_of = far(new, old) if group == "model" else max(size, 1e-3 * most)
            out.append(max(1e-6 * made_of, 2.0 ** -24 * size, 1e-12))
    return out


class Maker:
    """Makes the trajectory of one run, and can look again at a step for PyTorch's own distance from float64."""

    def __init__(self, case, mode, world, scatter, seed, count=cases.STEPS):
        torch.set_num_threads(1)
        self.case, self.world, self.seed, self.count = case, world, seed, count
        self.exact = Player(case, mode, world, scatter, torch.float64)
        self.near = Player(case, mode, world, scatter, torch.float32)
        self.run = Player(case, mode, world, scatter, torch.float32)
        for model in self.run.models:
            model.load_state_dict(torch_side.net_of(case, seed).state_dict())
        self.data = torch_side.data_of(case, seed)
        self.exact_data = torch_side.data_of(case, seed, torch.float64)
        # single plays ddp's ranks in one process, to the same bits
        self.yaml = cases.yaml_lines(case, "single" if mode == "ddp" else mode, world, scatter, seed, count)
        self.known = []  # (state, settings, parts) before each step

    def own(self, k, want, nudges):
        """Each tensor's largest distance from float64's over PyTorch's other ways to take step k."""
        state, settings, parts = self.known[k]
        ways = [(False, state)]
        for n in nudges:
            params = sum(1 for _ in self.near.models[0].parameters())
            near = dict(state, model=torch_side.nudge(state["model"][:params], 1000 * k + n) + state["model"][params:])
            ways.append((True, near))
        most = [0.0] * len(flat(state))
        for onednn, start in ways:
            with torch.backends.mkldnn.flags(enabled=onednn):
                self.near.put(start, k, settings)
                self.near.step(parts, *self.data)
            most = [max(m, far(a, b)) for m, a, b in zip(most, flat(self.near.get()), flat(want))]
        return most

    def trajectory(self, nudges=2):
        run, opt = self.run, self.run.opts[0]
        schedule = torch_side.scheduler(self.case, opt, self.count)
        made, names = [], None
        for k, parts in enumerate(torch_side.batches(len(self.data[0]), self.world, self.seed, cases.CASES[self.case]["batch"], self.count)):
            state, settings = run.get(), run.settings()
            for other in run.opts[1:]:
                other.param_groups[0].update(settings)
            self.known.append((state, settings, parts))
            self.exact.put(state, k, settings)
            loss = self.exact.step(parts, *self.exact_data)
            want = self.exact.get()
            run.step(parts, *self.data)
            mine = [far(a, b) for a, b in zip(flat(run.get()), flat(want))]
            own = [max(x) for x in zip(floors(state, want), mine, self.own(k, want, range(nudges)))]
            made.append(steps.Step(blob(state), loss, blob(want), own))
            if schedule is not None:
                schedule.step()
            names = names or self.names(state)
        return steps.Trajectory(self.yaml, names, made)

    def names(self, state):
        model = self.run.models[0]
        names = [n for n, _ in [*model.named_parameters(), *model.named_buffers()]]
        params = [n for n, _ in model.named_parameters()]
        names += [slot + "." + n for slot in self.run.slots for n in params]
        return [[n, t.numel() * t.element_size(), "f32" if t.is_floating_point() else "i64"] for n, t in zip(names, flat(state))]

    def widen(self, trajectory, k, draws=64):
        """A step that does not hold: PyTorch is asked as often again what ties can do there."""
        state, settings, parts = self.known[k]
        self.exact.put(state, k, settings)
        self.exact.step(parts, *self.exact_data)
        step = trajectory.steps[k]
        step.own = [max(x) for x in zip(step.own, self.own(k, self.exact.get(), range(1000, 1000 + draws)))]


def distance(a, b):
    return far(torch.frombuffer(bytearray(a), dtype=torch.float32), torch.frombuffer(bytearray(b), dtype=torch.float32))


def check(driver, maker, extra=()):
    """The report over all steps of a run, and how many had to be looked at again."""
    trajectory = maker.trajectory()
    report, again = steps.Report(), 0
    for k, came in enumerate(steps.take_steps(driver, trajectory.yaml, [s.before for s in trajectory.steps], extra)):
        first = steps.Report()
        first.compare(trajectory, k, came, distance)
        if first.faults:
            maker.widen(trajectory, k)
            again += 1
        report.compare(trajectory, k, came, distance)
    return report, again
