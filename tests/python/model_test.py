"""Models that only predict, and the sample of a notebook."""
import pickle
import subprocess
import sys
import threading
import types
import unittest

from support import ROOT, WORK, X, Y, Case, np, python, run, tandem


class Models(Case):
    @classmethod
    def setUpClass(cls):
        with run(run_dir=WORK / "trained") as it:
            it.train()
            cls.wanted, cls.in_memory = it.predict(X), it.model()
        cls.report = tandem.export(WORK / "trained", WORK / "points.tandem")
        cls.model = tandem.Model(WORK / "points.tandem")

    def test_it_predicts_as_the_run(self):
        for model in (self.model, self.in_memory, tandem.Model((WORK / "points.tandem").read_bytes(), threads=2)):
            np.testing.assert_allclose(model(X), self.wanted, rtol=1e-5, atol=1e-6)
        self.assertEqual(self.model.info.input_shape, (2,))
        self.assertIn("82 parameters", self.report)
        self.assertIn('"step"', self.model.info.origin)

    def test_the_program_says_the_precision(self):
        path = WORK / "points.tandem"
        self.assertTrue((tandem.Model(path, precision="f32")(X) == self.model(X)).all())
        self.refuses(tandem.UsageError, "precision must be", tandem.Model, path, precision="half")
        try:
            model = tandem.Model(path, precision="bf16")
        except tandem.UnsupportedError as refusal:
            self.assertIn("bf16 on a CPU needs", str(refusal))
        else:
            np.testing.assert_allclose(model(X), self.wanted, atol=0.1 * np.abs(self.wanted).max())

    def test_one_sample_and_other_arrays(self):
        one = self.model(X[0])
        self.assertEqual(one.shape, (2,))
        for same in (X[:1].astype(np.float64), X[:1].astype(">f4"), X[:1].tolist(), np.asfortranarray(X[:1])):
            self.assertTrue((self.model(same) == one).all())
        self.assertEqual(self.model(X[:0]).shape, (0, 2))
        for words, x in (("shape (rows, 2)", X[:, :1]), ("float32, or uint8", [[1, 2]]), ("must be numbers", [["a", "b"]]),
                         ("masked numbers", np.ma.masked_array(X, X > X.mean()))):
            self.refuses(tandem.UsageError, words, self.model, x)

    def test_threads_at_once_and_a_close_meanwhile(self):
        model, got = tandem.Model(WORK / "points.tandem"), [None] * 4

        def call(place):
            handle = model._open()  # a call in progress
            barrier.wait()
            barrier.wait()
            got[place] = handle
        barrier = threading.Barrier(5)
        threads = [threading.Thread(target=call, args=(i,)) for i in range(4)]
        outputs = []
        workers = [threading.Thread(target=lambda: outputs.append(self.model(X))) for _ in range(4)]
        for thread in threads + workers:
            thread.start()
        barrier.wait()
        model.close()
        barrier.wait()
        for thread in threads + workers:
            thread.join()
        self.assertTrue(all((output == outputs[0]).all() for output in outputs))
        self.assertTrue(all(handle.address.value for handle in got))
        self.refuses(tandem.UsageError, "the model is closed", model, X)

    def test_it_stays_in_its_process(self):
        self.refuses(tandem.UsageError, "a Model stays in its process", pickle.dumps, self.model)
        with run() as it:
            self.refuses(tandem.UsageError, "a Run stays in its process", pickle.dumps, it)

    def test_what_is_no_model(self):
        self.refuses(tandem.CheckpointError, "/nowhere", tandem.Model, "/nowhere")
        self.refuses(tandem.CheckpointError, "safetensors", tandem.Model, b"junk")
        self.refuses(tandem.UsageError, "is a folder", tandem.Model, WORK)
        (WORK / "net.onnx").write_bytes(b"\x08\x08\x12\x06tandem")
        self.refuses(tandem.CheckpointError, "net.onnx is a network, not a model of tandem", tandem.Model, WORK / "net.onnx")
        self.refuses(tandem.CheckpointError, "nowhere", tandem.export, "/nowhere", WORK / "out.tandem")

    def test_an_open_run_is_exported(self):
        to = WORK / "open.tandem"
        with run({"train.ema.decay": 0.9, "eval.weights": "ema"}) as it:
            it.step(3)
            raw = it.export(to)
            tandem.export(it.save(WORK / "saved"), WORK / "closed.tandem")
            self.assertEqual((to.read_bytes(), it.export()), (raw, raw))
            self.refuses(tandem.StorageError, "open.tandem exists; remove it, or choose another name", it.export, to)
            self.refuses(tandem.StorageError, "No such file", it.export, WORK / "no folder/it")
            self.refuses(tandem.UsageError, "a path must be", it.export, 3)
            self.assertIn("82 parameters", tandem.export(it, WORK / "other.tandem"))
            tandem.export(WORK / "saved", WORK / "closed.onnx", onnx=True)
            self.assertIn("82 parameters", tandem.export(it, WORK / "open.onnx", onnx=True))
            self.assertEqual((WORK / "closed.onnx").read_bytes(), (WORK / "open.onnx").read_bytes())
            self.refuses(tandem.UsageError, "Run.export() makes the bytes of a model", tandem.Model, it.save_bytes())
        for same in ("other.tandem", "closed.tandem"):
            self.assertEqual((WORK / same).read_bytes(), raw)
        self.refuses(tandem.StorageError, "open.tandem exists; remove it", tandem.export, WORK / "trained", to)
        self.assertEqual([name.name for name in WORK.glob("*.tmp")], [])

    def test_a_model_learns_more(self):
        changes = {"train.steps": 3, "train.batch.per_device": 16, "model.weights": WORK / "points.tandem"}
        with tandem.Run(self.model.info.text, changes, train=(X, Y), run_dir=None) as it:
            np.testing.assert_allclose(it.predict(X), self.wanted, rtol=1e-5, atol=1e-6)
            it.train()
            newer = tandem.Model(it.export())
        self.assertEqual(newer.info.text, self.model.info.text)
        self.assertTrue((newer(X) != self.wanted).any())

    def test_rows_of_a_table(self):
        rows = [{"size": 40 + 7 * i % 60, "city": ("Bern", "Rome")[i % 2]} for i in range(40)]
        prices = np.array([3 * row["size"] + 50 * (row["city"] == "Rome") for row in rows], np.float32)
        lines = [f"{row['city']},{price},{row['size']}" for row, price in zip(rows, prices)]
        (WORK / "homes.csv").write_text("\n".join(["city,price,size", *lines]))
        table = {"format": "csv", "path": str(WORK / "homes.csv"), "label": "price", "categories": ["city"],
                 "standardize": True, "standardize_target": True}
        values = {"tandem": 1, "model": {"input": 2, "layers": [{"linear": 1}]}, "loss": "mse", "data": {"train": table},
                  "optimizer": {"type": "adam", "lr": 0.1}, "train": {"steps": 300, "batch": {"per_device": 20}}}
        with tandem.Run(values, run_dir=None) as it:
            it.train()
            model = it.model()
        self.assertEqual((model.columns, model.target.name), (["size", "city"], "price"))
        given = rows + [[row["size"], row["city"]] for row in rows]
        found = model(model.samples(given))[:, 0] * model.target.stdev + model.target.mean
        np.testing.assert_allclose(found, np.tile(prices, 2), rtol=0.02)
        self.refuses(tandem.UsageError, "rows[1] has no 'city'", model.samples, [rows[0], {"size": 3}])
        self.refuses(tandem.UsageError, "rows[0] has 1 cells", model.samples, [[3]])
        self.refuses(tandem.DataError, "column 'size': expected a number, found 'big'", model.samples, [["big", "Rome"]])
        self.refuses(tandem.DataError, "the number is missing", model.samples, [{"size": None, "city": "Rome"}])
        self.refuses(tandem.DataError, "'Oslo' is not in the data trained on", model.samples, [[50, "Oslo"]])
        series = types.MappingProxyType({"city": b"Rome", "size": 47})  # by its names, as a Series of pandas
        np.testing.assert_array_equal(model.samples([series]), model.samples([[47, "Rome"]]))
        self.refuses(tandem.UsageError, "rows must be a list of rows, got dict", model.samples, {"size": [1], "city": [2]})
        self.refuses(tandem.UsageError, "rows must be a list of rows, got str", model.samples, "ab")
        self.refuses(tandem.UsageError, "rows[0] must be a dict or a list of cells, got str", model.samples, ["ab"])
        self.refuses(tandem.UsageError, "no names of columns", self.model.samples, [{"size": 1}])
        self.assertEqual((self.model.columns, self.model.target.stdev), ([], 1))
        self.refuses(tandem.UsageError, "was not trained on a table", self.model.samples, [[1, 2]])

    def test_onnx_is_written(self):
        tandem.export(WORK / "trained", WORK / "points.onnx", onnx=True)
        self.assertGreater((WORK / "points.onnx").stat().st_size, 300)

    def test_onnx_is_read(self):
        tandem.export(WORK / "trained", WORK / "back.onnx", onnx=True)
        job = tandem.onnx_job(WORK / "back.onnx")
        self.assertIn("weights: ", job)
        with tandem.Run(job, run_dir=None) as it, tandem.Model(WORK / "points.tandem") as model:
            x = np.random.default_rng(3).random((5, *model.info.input_shape), np.float32)
            self.assertTrue(np.allclose(it.predict(x), model(x), atol=1e-6))
        self.refuses(tandem.CheckpointError, "nowhere", tandem.onnx_job, "nowhere.onnx")
        self.refuses(tandem.UsageError, "task and data", tandem.onnx_job, WORK / "back.onnx", task="images")


class Sample(Case):
    def test_it_prints_what_it_should(self):
        sample = ROOT / "samples/python"
        code, said = python(f"import runpy; runpy.run_path({str(sample / 'rings.py')!r}, run_name='__main__')")
        self.assertEqual((code, said), (0, (sample / "expected_output.txt").read_text()))


if __name__ == "__main__":
    unittest.main()
