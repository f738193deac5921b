"""Models with several inputs: samples as a dict of arrays, as rows, or one at a time, in every mode."""
import unittest

from support import WORK, Case, np, tandem

_random = np.random.default_rng(1)
IMAGE = _random.integers(0, 256, (96, 1, 8, 8)).astype(np.uint8)
FACTS = _random.normal(size=(96, 5)).astype(np.float32)
LABEL = ((IMAGE.reshape(96, -1).mean(1) > 127) * 1 + (FACTS[:, 0] > 0) * 2).astype(np.int64)
SCALED = IMAGE.astype(np.float32) / np.float32(255)
X = {"image": IMAGE, "facts": FACTS}
ROWS = np.concatenate([SCALED.reshape(96, -1), FACTS], axis=1)
READY = {"image": (SCALED - np.float32(0.5)) / np.float32(0.25), "facts": (FACTS - np.float32(1)) / np.float32(3)}
JOB = {"tandem": 1, "name": "two", "seed": 3,
       "model": {"inputs": {"image": [1, 8, 8], "facts": 5},
                 "layers": [{"conv2d": {"name": "conv", "input": "image", "out": 4, "kernel": 3}}, "relu",
                            {"flatten": {"id": "picture"}}, {"linear": {"name": "fc1", "input": "facts", "out": 8}},
                            {"relu": {"id": "numbers"}}, {"concat": {"input": ["picture", "numbers"]}},
                            {"linear": {"name": "out", "out": 4}}]},
       "data": {"transform": ["to_float", {"normalize": {"mean": 0.5, "std": 0.25, "inputs": "image"}},
                              {"normalize": {"mean": 1, "std": 3, "inputs": "facts"}}]},
       "loss": "cross_entropy", "optimizer": {"type": "adam", "lr": 0.01},
       "train": {"steps": 20, "batch": {"global": 16}},
       "parallel": {"mode": "single", "kernels": "ref", "device_ids": [0, 1], "dp": {"scatter": "strided"}}}


class Samples:
    """One at a time, a dict each."""

    def __init__(self, image):
        self.image = image

    def __len__(self):
        return 96

    def __getitem__(self, index):
        return {"image": self.image[index], "facts": FACTS[index]}, int(LABEL[index])


def trained(x=X, train=None, **parallel):
    job = {**JOB, "parallel": {**JOB["parallel"], **parallel}}
    return tandem.train(job, train=train or (x, LABEL), run_dir=None).params_xxh3


class Inputs(Case):
    def test_all_ways_and_modes_have_the_same_bits(self):
        wanted = trained()
        for x in ({"facts": FACTS.astype(np.float64), "image": SCALED}, ROWS, {**X, "image": SCALED}):
            self.assertEqual(trained(x), wanted)
        self.assertEqual(trained(train=Samples(SCALED)), wanted)
        for mode in ("dp", "ddp"):
            self.assertEqual(trained(mode=mode), wanted)

    def test_runs_and_models_predict(self):
        with tandem.Run(JOB, train=(X, LABEL), run_dir=WORK / "two") as run:
            run.train()
            wanted, model = run.predict(ROWS), run.model()
            self.assertEqual(run.inputs, {"image": (1, 8, 8), "facts": (5,)})
            self.assertEqual(run.input_shape, (69,))
            for x, ready in ((X, False), ({**X, "image": SCALED.reshape(96, 64)}, False), (READY, True)):
                self.assertTrue((run.predict(x, ready=ready) == wanted).all())
        self.assertEqual(model.info.inputs, {"image": (1, 8, 8), "facts": (5,)})
        self.assertEqual(model.info.input_shape, (69,))
        outputs = model(ROWS)
        np.testing.assert_allclose(outputs, wanted, rtol=1e-5, atol=1e-6)
        self.assertTrue((model(X) == outputs).all() and (model(READY, ready=True) == outputs).all())
        one = model({"image": IMAGE[3], "facts": FACTS[3]})
        self.assertEqual(one.shape, (4,))
        self.assertTrue((one == model({name: x[3:4] for name, x in X.items()})[0]).all())
        self.assertEqual(model({name: x[:0] for name, x in X.items()}).shape, (0, 4))
        for words, x in (("no input 'imag'; its inputs are image, facts", {**X, "imag": IMAGE}),
                         ("no array for the model's input 'facts'", {"image": IMAGE}),
                         ("x['facts'] has 3 samples, and the inputs before it 96", {**X, "facts": FACTS[:3]}),
                         ("x['image'] must have the shape (rows, 1, 8, 8)", {**X, "image": IMAGE[:, :, 1:]}),
                         ("(rows, 69)", IMAGE), ("x['facts'] must be float32", {**X, "facts": FACTS.astype(int)})):
            self.refuses(tandem.UsageError, words, model, x)

    def test_what_is_refused(self):
        self.refuses(tandem.DataError, "an object's samples are all of one kind", trained, train=Samples(IMAGE))
        self.refuses(tandem.UsageError, "train: x has no array for the model's input 'facts'", trained, {"image": IMAGE})
        self.refuses(tandem.UsageError, "y must have the shape (95,)", trained, {name: x[:95] for name, x in X.items()})
        pair = "x: give a dict; its inputs are image, facts"
        self.refuses(tandem.UsageError, pair, trained, (IMAGE, FACTS))
        self.refuses(tandem.UsageError, pair, trained, [IMAGE, FACTS])
        one = {**JOB, "model": {"input": [5], "layers": [{"linear": 4}]}, "data": {}}
        with tandem.Run(one, train=(FACTS, LABEL), run_dir=None) as run:
            self.assertEqual((run.inputs, run.input_shape), ({}, (5,)))
            self.refuses(tandem.UsageError, "the model's input has no name (model.input)", run.predict, {"facts": FACTS})
            self.assertEqual(run.model().info.inputs, {})


if __name__ == "__main__":
    unittest.main()
