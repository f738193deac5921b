"""The models that tandem and PyTorch train side by side, and the YAML of each. Needs nothing but Python.

A layer is (kind, settings); the settings `id` and `input` name values as in the YAML. Data is `format: synthetic`:
both sides draw the very same numbers from the seed, so nothing has to be stored.
"""

import math

STEPS = 100
EVAL_SAMPLES = 200
EVAL_SEED_OFFSET = 1000


def conv(out, kernel=3, **more):
    return ("conv2d", dict(out=out, kernel=kernel, **more))


BN, BN_1D, RELU, FLATTEN = ("batchnorm2d", {}), ("batchnorm1d", {}), ("relu", {}), ("flatten", {})

# samples are chosen so that no number of replicas divides them and the last batch of an epoch is short
CASES = {
    "toy": dict(input=[10], loss="mse", batch=20, samples=203, optimizer=dict(type="sgd", lr=0.05),
                layers=[("linear", dict(out=10)), RELU, ("linear", dict(out=5))]),
    "mlp": dict(input=[1, 8, 8], loss="cross_entropy", batch=16, samples=203,
                optimizer=dict(type="sgd", lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-4),
                layers=[FLATTEN, ("linear", dict(out=32)), RELU, ("linear", dict(out=10))]),
    "cnn": dict(input=[1, 12, 12], loss="cross_entropy", batch=8, samples=67, optimizer=dict(type="adam", lr=2e-3),
                layers=[conv(8, padding=1), RELU, ("maxpool2d", dict(kernel=2)), conv(16, padding=1), RELU,
                        ("maxpool2d", dict(kernel=2)), FLATTEN, ("linear", dict(out=32)), RELU, ("linear", dict(out=10))]),
    "bn_cnn": dict(input=[3, 12, 12], loss="cross_entropy", batch=8, samples=203,
                   optimizer=dict(type="adamw", lr=1e-3, weight_decay=0.01),
                   layers=[conv(8, padding=1, bias=False), BN, RELU, ("maxpool2d", dict(kernel=2)),
                           conv(16, padding=1, bias=False), BN, RELU, ("maxpool2d", dict(kernel=2)), FLATTEN,
                           ("linear", dict(out=10))]),
    # batch norm of series and of features
    "bn_mlp": dict(input=[4, 9], loss="cross_entropy", batch=8, samples=203,
                   optimizer=dict(type="sgd", lr=0.02, momentum=0.9),
                   layers=[BN_1D, FLATTEN, ("linear", dict(out=32, bias=False)), BN_1D, RELU,
                           ("linear", dict(out=10))]),
    # a bias in front of batch norm: its gradient is rounding noise and Adam makes steps of it. The training loss does not see
    # that bias, but the running mean trails behind it, so the evaluation of PyTorch's own two kernels differs by 1e-4
    "bn_bias": dict(input=[3, 12, 12], loss="cross_entropy", batch=8, samples=203, evaluate=False,
                    optimizer=dict(type="adam", lr=1e-3),
                    layers=[conv(8, padding=1), BN, RELU, ("maxpool2d", dict(kernel=2)), FLATTEN, ("linear", dict(out=10))]),
    "residual": dict(input=[3, 12, 12], loss="cross_entropy", batch=16, samples=107,
                     optimizer=dict(type="sgd", lr=0.001, momentum=0.9, weight_decay=5e-4),
                     schedule=dict(type="cosine", warmup_steps=10),
                     layers=[conv(8, padding=1, bias=False), BN, ("relu", dict(id="a")),
                             conv(8, padding=1, bias=False), BN, RELU, conv(8, padding=1, bias=False),
                             ("batchnorm2d", dict(id="b")), ("add", dict(input=["b", "a"])), RELU,
                             ("avgpool2d", dict(kernel=2, id="c")),
                             conv(16, padding=1, stride=2, bias=False), ("batchnorm2d", dict(id="d")),
                             conv(16, kernel=1, stride=2, bias=False, input="c"), ("batchnorm2d", dict(id="e")),
                             ("add", dict(input=["d", "e"])), RELU, ("adaptive_avgpool2d", dict(out=1)), FLATTEN,
                             ("linear", dict(out=10))]),
    "convs": dict(input=[4, 13, 11], loss="cross_entropy", batch=8, samples=67,
                  optimizer=dict(type="sgd", lr=0.1, momentum=0.9, dampening=0.1),
                  layers=[conv(8, kernel=[3, 2], stride=[2, 1], padding=[1, 0], groups=2), RELU,
                          conv(8, kernel=3, padding=2, dilation=2, groups=8, bias=False), conv(12, kernel=1), RELU,
                          ("maxpool2d", dict(kernel=3, stride=2, padding=1)), ("adaptive_avgpool2d", dict(out=[3, 2])),
                          FLATTEN, ("linear", dict(out=10))]),
    "smooth": dict(input=[1, 12, 12], loss="cross_entropy", label_smoothing=0.1, batch=16, samples=96, accumulate=2,
                   clip_grad_norm=0.5, optimizer=dict(type="adam", lr=2e-3, betas=[0.8, 0.99], weight_decay=1e-3),
                   schedule=dict(type="onecycle", max_lr=4e-3),
                   layers=[conv(8, padding=1), RELU, ("avgpool2d", dict(kernel=3, stride=2, padding=1)), FLATTEN,
                           ("linear", dict(out=32)), RELU, ("linear", dict(out=10))]),
    # fine-tuning: a frozen block in front, a frozen batch norm, a bias and a weight behind trained layers
    "frozen": dict(input=[3, 12, 12], loss="cross_entropy", batch=8, samples=107,
                   optimizer=dict(type="adam", lr=1e-3),
                   freeze=["0.*", "1.*", "5.*", "7.bias", "12.weight"],
                   layers=[conv(8, padding=1, bias=False), BN, RELU, ("maxpool2d", dict(kernel=2)),
                           conv(8, padding=1, bias=False), BN, RELU, conv(8, padding=1), BN, RELU,
                           ("maxpool2d", dict(kernel=2)), FLATTEN, ("linear", dict(out=10))]),
    # groups: no decay for biases, a faster head, the last frozen; each with the schedule's factors
    "groups": dict(input=[1, 8, 8], loss="cross_entropy", batch=16, samples=203, clip_grad_norm=1.0,
                   optimizer=dict(type="adamw", lr=1e-3, weight_decay=0.05,
                                  groups=[dict(params="*.bias", weight_decay=0.0), dict(params=["5.*"], lr=5e-3)]),
                   schedule=dict(type="cosine", warmup_steps=10), freeze=["3.bias"],
                   layers=[FLATTEN, ("linear", dict(out=32)), RELU, ("linear", dict(out=32)), RELU,
                           ("linear", dict(out=10))]),
    "sgd_groups": dict(input=[1, 8, 8], loss="cross_entropy", batch=16, samples=203,
                       optimizer=dict(type="sgd", lr=0.05, momentum=0.9, weight_decay=1e-3,
                                      groups=[dict(params=["1.*"], lr=0.01), dict(params="*.bias", weight_decay=0.0)]),
                       layers=[FLATTEN, ("linear", dict(out=32)), RELU, ("linear", dict(out=10))]),
    "series": dict(input=[3, 24], loss="cross_entropy", batch=8, samples=67, optimizer=dict(type="adam", lr=2e-3),
                   layers=[("conv1d", dict(out=8, kernel=5, padding="same")), RELU,
                           ("conv1d", dict(out=12, kernel=4, stride=2, padding=1, groups=2)), RELU,
                           ("maxpool1d", dict(kernel=2)), ("transpose", {}), ("layernorm", {}),
                           ("lstm", dict(hidden=12, layers=2, outputs="all")), ("gru", dict(hidden=8)),
                           ("linear", dict(out=5))]),
    "rmsprop": dict(input=[1, 8, 8], loss="cross_entropy", batch=16, samples=203, clip_grad_norm=1.0, clip_grad_value=0.1,
                    optimizer=dict(type="rmsprop", lr=1e-3, momentum=0.9, centered=True, eps=1e-3, weight_decay=1e-3),
                    layers=[FLATTEN, ("linear", dict(out=32)), RELU, ("linear", dict(out=10))]),
    # torch has none: tests/support/torch_lars.py. Biases and batch norm take plain steps
    "lars": dict(input=[3, 12, 12], loss="cross_entropy", batch=8, samples=203,
                 optimizer=dict(type="lars", lr=2.0, momentum=0.9, nesterov=True, weight_decay=1e-4,
                                groups=[dict(params=["7.*"], lr=0.5, weight_decay=1e-2)]),
                 schedule=dict(type="cosine", warmup_steps=10),
                 layers=[conv(8, padding=1, bias=False), BN, RELU, ("maxpool2d", dict(kernel=2)), FLATTEN,
                         ("linear", dict(out=32)), RELU, ("linear", dict(out=10))]),
    # the mean divides by the weights of the labels; DistributedDataParallel's is a mean of the ranks' means
    "weighted": dict(input=[1, 8, 8], loss="cross_entropy", label_smoothing=0.1, batch=16, samples=203,
                     class_weight=[0.1, 3.5, 1.0, 0.5, 2.0, 0.25, 1.5, 0.01, 4.0, 1.0],
                     optimizer=dict(type="adam", lr=2e-3, amsgrad=True),
                     layers=[FLATTEN, ("linear", dict(out=32)), RELU, ("linear", dict(out=10))]),
    # torchvision's network as model.builtin has it, with the names that it has there. With a larger lr 20 batch norms of small
    # images are chaotic: at 1e-3 one unit in the last place of the weights is 4 % of the loss after 20 steps, here 2e-4
    "resnet18": dict(input=[3, 16, 16], builtin="resnet18", classes=10, network=dict(small_input=True),
                     loss="cross_entropy", batch=8, samples=67, evaluate=False, optimizer=dict(type="sgd", lr=1e-4, momentum=0.9, weight_decay=1e-4)),
    # a folder of pictures (pictures.py) with the recipe of those who train on one: a rate that rises in the first epochs, and
    # blocks that begin as identities. So batch norm does not make last bits large, and no loss may be further off than `within`
    "folder": dict(input=[3, 64, 64], builtin="resnet18", classes=4, network=dict(zero_init_residual=True),
                   pictures=dict(resize=64, crop=64, mean=[0.5, 0.5, 0.5], std=[0.25, 0.25, 0.25]), loss="cross_entropy",
                   batch=32, evaluate=False, within=1e-3, optimizer=dict(type="sgd", lr=1e-3, momentum=0.9, weight_decay=1e-4),
                   schedule=dict(type="constant", warmup_steps=20, warmup_factor=0.05)),
    # several inputs: a sample is one row of the numbers of all
    "inputs": dict(inputs=dict(image=[3, 12, 12], facts=[7], other=[1, 8, 8]), loss="cross_entropy", batch=8, samples=107,
                   optimizer=dict(type="adam", lr=1e-3),
                   layers=[conv(8, padding=1, input="image"), RELU, ("maxpool2d", dict(kernel=2)), ("flatten", dict(id="a")),
                           ("linear", dict(out=16, input="facts")), ("relu", dict(id="b")),
                           conv(4, input="other"), RELU, ("flatten", dict(id="c")),
                           ("concat", dict(input=["a", "b", "facts", "c"])), ("linear", dict(out=32)), RELU,
                           ("linear", dict(out=10))]),
    # as small as can be, since fixtures/steps holds its state before every step
    "tiny": dict(input=[2, 6, 6], loss="cross_entropy", batch=6, samples=27,
                 optimizer=dict(type="adamw", lr=5e-3, weight_decay=0.01),
                 layers=[conv(3, padding=1, bias=False), BN, RELU, ("maxpool2d", dict(kernel=2)),
                         ("adaptive_avgpool2d", dict(out=1)), FLATTEN, ("linear", dict(out=4))]),
}

EVERY_WAY = [("single", 1, ""), ("dp", 2, "strided"), ("dp", 3, "strided"), ("dp", 3, "chunk"),
             ("ddp", 1, ""), ("ddp", 2, ""), ("ddp", 3, "")]
FIXTURES = {
    "toy": [("single", 1, ""), ("dp", 2, "chunk"), ("ddp", 3, "")],
    "mlp": EVERY_WAY,
    "cnn": [("single", 1, ""), ("dp", 2, "strided"), ("ddp", 3, "")],
    "bn_cnn": EVERY_WAY,
    "bn_mlp": [("single", 1, ""), ("dp", 2, "strided"), ("ddp", 2, "")],
    "bn_bias": [("single", 1, ""), ("dp", 3, "chunk")],
    "residual": [("single", 1, ""), ("dp", 2, "strided"), ("ddp", 2, "")],
    "convs": [("single", 1, ""), ("ddp", 2, "")],
    "smooth": [("single", 1, ""), ("dp", 2, "strided"), ("ddp", 2, "")],
    "frozen": [("single", 1, ""), ("dp", 2, "strided"), ("ddp", 2, "")],
    "groups": [("single", 1, ""), ("ddp", 3, "")],
    "sgd_groups": [("single", 1, "")],
    "series": [("single", 1, ""), ("dp", 2, "strided"), ("ddp", 2, "")],
    "rmsprop": [("single", 1, ""), ("dp", 2, "strided"), ("ddp", 2, "")],
    "lars": [("single", 1, ""), ("dp", 2, "strided"), ("ddp", 2, "")],
    "weighted": [("single", 1, ""), ("dp", 2, "strided")],
    "inputs": [("single", 1, ""), ("dp", 2, "strided"), ("dp", 3, "chunk"), ("ddp", 2, "")],
}
# networks of model.builtin, in fixtures/networks
NETWORK_STEPS = 20
NETWORKS = {case: [("single", 1, ""), ("dp", 2, "strided"), ("ddp", 2, "")] for case in ("resnet18", "folder")}
# step by step, from PyTorch's own states (steps.py)
STEPS_HELD = 30
STEPWISE = {"tiny": [("single", 1, ""), ("dp", 2, "strided")], "toy": [("single", 1, "")]}
# with train.precision: bf16; not so long, since roundings of 2^-8 grow apart sooner
BF16_STEPS = 40
BF16 = ["mlp", "cnn", "bn_cnn", "residual", "convs", "smooth"]


def name_of(case, mode, world, scatter):
    return "%s-%s-%d%s" % (case, mode, world, "-chunk" if scatter == "chunk" else "")


def is_classes(case):
    return CASES[case]["loss"] == "cross_entropy"


def output_width(case):
    c = CASES[case]
    return c["classes"] if "builtin" in c else c["layers"][-1][1]["out"]


def sample_shape(case):
    """Of several inputs a sample is one row."""
    c = CASES[case]
    return [sum(math.prod(shape) for shape in c["inputs"].values())] if "inputs" in c else c["input"]


def network_lines(c):
    """The lines of the model's layers, or of the network that has them."""
    if "builtin" in c:
        return ["  %s: %s" % (k, flow(v)) for k, v in dict(builtin=c["builtin"], classes=c["classes"], **c["network"]).items()]
    return ["  layers:"] + ["    - %s" % (kind if not s else "%s: %s" % (kind, flow(s))) for kind, s in c["layers"]]


def flow(value):
    """One setting in YAML's flow style."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{" + ", ".join("%s: %s" % (k, flow(v)) for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(flow(v) for v in value) + "]"
    if isinstance(value, str) and set(value) & set("*."):
        return '"%s"' % value
    return value if isinstance(value, str) else repr(value)


def data_lines(c):
    if "pictures" not in c:
        return ["  train: " + flow(dict(format="synthetic", samples=c["samples"]))]
    p = c["pictures"]
    steps = [dict(resize=p["resize"]), dict(center_crop=p["crop"]), "to_float", dict(normalize=dict(mean=p["mean"], std=p["std"]))]
    return ["  train: {format: image_folder, path: pictures}", "  transform: " + flow(steps)]


def yaml_lines(case, mode, world, scatter, seed, steps=STEPS):
    c = CASES[case]
    train = dict(steps=steps, batch=dict(per_device=c["batch"]))
    train.update({k: c[k] for k in ("accumulate", "clip_grad_norm", "clip_grad_value") if k in c})
    loss = dict(type=c["loss"], label_smoothing=c["label_smoothing"]) if "label_smoothing" in c else c["loss"]
    if "class_weight" in c:
        loss["weight"] = c["class_weight"]
    parallel = dict(mode=mode, device="cpu", device_ids=list(range(world)), threads_per_device=1)
    if scatter:
        parallel["dp"] = dict(scatter=scatter)
    lines = ["tandem: 1", "name: " + name_of(case, mode, world, scatter), "seed: %d" % seed, "model:",
             "  inputs: " + flow(c["inputs"]) if "inputs" in c else "  input: " + flow(c["input"]), *(["  freeze: " + flow(c["freeze"])] if "freeze" in c else [])]
    lines += network_lines(c)
    lines += ["data:"] + data_lines(c)
    if c.get("evaluate", True):
        lines.append("  eval: " + flow(dict(format="synthetic", samples=EVAL_SAMPLES, seed=seed + EVAL_SEED_OFFSET)))
    lines += ["loss: " + flow(loss), "optimizer: " + flow(c["optimizer"])]
    if "schedule" in c:
        lines.append("schedule: " + flow(c["schedule"]))
    return lines + ["train: " + flow(train), "parallel: " + flow(parallel), "eval: {every: null}",
                    "checkpoint: {every: null}", "log: {every: 1 steps}"]
