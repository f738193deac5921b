"""LARS, which torch does not have: You, Gitman and Ginsburg 2017, arXiv 1708.03888, with the denominator of NVIDIA apex
and timm and the momentum of torch.optim.SGD. Parameters of one dimension take plain steps of SGD without decay, as in
SimCLR and MoCo v3, unless exclude_1d is false."""
import torch


class Lars(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False,
                 trust_coefficient=1e-3, eps=1e-8, exclude_1d=True):
        super().__init__(params, dict(lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay,
                                      nesterov=nesterov, trust_coefficient=trust_coefficient, eps=eps,
                                      exclude_1d=exclude_1d))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self.update(p, group)

    def update(self, p, group):
        d = p.grad
        if p.ndim > 1 or not group["exclude_1d"]:
            ratio = trust_ratio(p, d, group)
            if group["weight_decay"]:
                d = d.add(p, alpha=group["weight_decay"])
            d = d * ratio
        if group["momentum"]:
            state = self.state[p]
            if "momentum_buffer" in state:
                state["momentum_buffer"].mul_(group["momentum"]).add_(d, alpha=1 - group["dampening"])
            else:
                state["momentum_buffer"] = d.clone()
            b = state["momentum_buffer"]
            d = d.add(b, alpha=group["momentum"]) if group["nesterov"] else b
        p.add_(d, alpha=-group["lr"])


def trust_ratio(p, g, group):
    """Norms are summed in double and rounded: torch's own order of additions is not the same on every processor."""
    p_norm, g_norm = (t.double().norm().to(t.dtype) for t in (p, g))
    if not (p_norm > 0 and g_norm > 0):
        return torch.ones((), dtype=p.dtype)
    return group["trust_coefficient"] * p_norm / (g_norm + group["weight_decay"] * p_norm + group["eps"])
