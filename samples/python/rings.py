"""Training on numpy arrays, cell by cell: editors and notebooks run each part between `# %%` lines by itself.

    pip install dist/*.whl
    python samples/python/rings.py

A small net learns whether a point of the plane lies in a ring.
"""
# %% The data: arrays as they are
import numpy as np
import tandem

random = np.random.default_rng(0)
points = random.uniform(-1, 1, (4096, 2)).astype(np.float32)
square = (points ** 2).sum(axis=1)
in_ring = ((square > 0.16) & (square < 0.81)).astype(np.int64)

# %% The job: a dict with the keys of the YAML file, or the path of one
job = {
    "tandem": 1, "name": "rings", "seed": 1,
    "model": {"input": [2], "layers": [{"linear": 64}, "relu", {"linear": 2}]},
    "loss": "cross_entropy",
    "optimizer": {"type": "adam", "lr": 1e-2},
    "train": {"epochs": 100, "batch": {"per_device": 32}},
    "parallel": {"mode": "dp", "device_ids": [0, 1]},  # two devices of the CPU; "ddp" makes them two processes
}


# %% A callback sees every step, and stops the run with a true answer
class Smooth:
    loss = 1.0  # single batches are noisy

    def __call__(self, event):
        self.loss += 0.02 * (event.loss - self.loss)
        if event.step % 500 == 0:
            print(f"step {event.step:4d}  loss {self.loss:.1f}")
        return self.loss < 0.15


run = tandem.Run(job, train=(points[:3500], in_ring[:3500]), eval=(points[3500:], in_ring[3500:]), run_dir=None,
                 on_step=Smooth())
state = run.train()
print("stopped early:", state.stopped)

# %% What it learned: numbers, arrays, and a model that only predicts
print(f"accuracy is above 90 %: {run.evaluate().accuracy > 0.9}")
print({name: value.shape for name, value in run.state_dict().items()})
model = run.model()
for point in ([0.0, 0.0], [0.6, 0.2], [0.95, 0.95]):
    inside = model(np.array(point, np.float32)).argmax() == 1
    print(point, "is inside the ring" if inside else "is outside the ring")

# %% A loop of one's own: the same run goes on, at a rate of one's own, step by step
before = run.read("0.weight")
run.set_lr(1e-3)
run.step(10)
print("moved:", bool(np.abs(run.read("0.weight") - before).max() > 0), "- gradient of", run.gradient("0.weight").shape)
run.close()
