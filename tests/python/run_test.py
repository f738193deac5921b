"""Runs: training, callbacks, tensors, checkpoints, samples of one's own, misuse, Ctrl-C, fork."""
import json
import math
import os
import pickle
import signal
import subprocess
import threading
import time
import unittest

from support import BUILD, JOB, ROOT, WORK, X, Y, Case, Points, job, np, run, tandem, trained


class Training(Case):
    def test_bits_are_those_of_the_command(self):
        toy = ROOT / "samples/toy/toy.yaml"
        state = tandem.train(toy, {"optimizer.lr": 0.01}, steps=20, run_dir=None)
        subprocess.run([BUILD / "bin/tandem", "train", toy, "--quiet", "--steps", "20", "--run-dir", WORK / "toy",
                        "optimizer.lr=0.01"], check=True, capture_output=True)
        self.assertEqual(state.params_xxh3, json.loads((WORK / "toy/summary.json").read_text())["params_xxh3"])
        self.assertEqual((state.step, state.stopped), (20, False))

    def test_a_job_is_a_file_a_text_or_a_dict(self):
        text = json.dumps(JOB) + "\n"
        (WORK / "job.yaml").write_text(text)
        self.assertEqual(len({trained(job=JOB), trained(job=text), trained(job=str(WORK / "job.yaml"))}), 1)
        self.assertEqual(trained({"optimizer.lr": np.float32(0.5), "train.steps": np.int64(3)}),
                         trained(["optimizer.lr=0.5"], steps=3))
        self.refuses(tandem.UsageError, "a job is the path", trained, job=3)
        self.refuses(tandem.UsageError, "lists and dicts, got object", trained, {"optimizer.lr": object()})

    def test_events_are_objects_that_stay(self):
        seen = []
        trained({"eval.every": "20 steps"}, on_event=seen.append, run_dir=WORK / "events")
        kinds = [event.kind for event in seen]
        self.assertEqual((kinds[0], kinds[-1], kinds.count("step")), ("start", "end", 40))
        last = [event for event in seen if event.kind == "step"][-1]
        self.assertEqual((last.step, last.steps_total, last.samples), (40, 40, 16))
        self.assertTrue(last.loss > 0 and last.ms["step"] >= 0 and math.isnan(last.top5))
        self.assertTrue(os.path.isdir([event for event in seen if event.kind == "checkpoint"][-1].path))

    def test_a_callback_stops_and_the_run_goes_on(self):
        stop_at = 7
        with run(on_step=lambda event: event.step == stop_at) as it:
            state = it.train()
            self.assertEqual((state.step, state.stopped), (7, True))
            stop_at = 0
            self.assertEqual(it.train().params_xxh3, trained())

    def test_what_a_callback_raises_comes_out(self):
        def on_step(event):
            if event.step == 7:
                raise KeyError("seven")
        with run(on_step=on_step) as it:
            self.assertRaises(KeyError, it.train)
            self.assertEqual(it.state.step, 7)

    def test_a_run_that_is_done_says_so(self):
        options = {"train": (X, Y), "run_dir": WORK / "done"}
        wanted = tandem.train(JOB, **options).params_xxh3
        with self.assertWarnsRegex(RuntimeWarning, "all 40 steps of .*/done are done; give more steps.*'never'") as caught:
            self.assertEqual(tandem.train(JOB, **options).params_xxh3, wanted)
        self.assertEqual(caught.filename, __file__)
        with tandem.Run(JOB, **options) as it:
            with self.assertWarnsRegex(RuntimeWarning, "nothing to do") as caught:
                it.train()
            self.assertEqual(caught.filename, __file__)
        self.assertEqual(tandem.train(JOB, steps=41, **options).step, 41)  # a warning is an error here
        self.assertEqual(tandem.train(JOB, resume="never", **options).params_xxh3, wanted)

    def test_two_runs_of_one_second_have_two_folders(self):
        os.chdir(WORK)
        named = {**JOB, "run": {"dir": "twice/${start_time}"}}
        for _ in range(2):
            tandem.train(named, {"train.steps": 2}, train=(X, Y))
        self.assertEqual(len(os.listdir("twice")), 2)


class OwnLoop(Case):
    def test_steps_rates_gradients_and_tensors(self):
        with run() as it:
            self.refuses(tandem.UsageError, "has made no step", it.gradient, "fc1.weight")
            before = it.read("fc1.weight")
            it.set_lr(0.5)
            event = it.step()
            self.assertEqual((event.step, event.lr), (1, 0.5))
            it.set_lr(None)
            self.assertEqual(it.step(2).lr, 0.01)
            self.assertEqual(it.gradient("fc1.weight").shape, before.shape)
            self.assertEqual(list(it.optimizer_state())[0], "exp_avg.fc1.weight")
            scores = it.evaluate()
            self.assertEqual(scores.samples, 256)
            logits = it.predict(X)
            self.assertEqual(scores.accuracy, np.mean(logits.argmax(1) == Y))
            self.refuses(tandem.UsageError, "all 40 steps of the job", it.step, 100)

    def test_a_step_in_pieces_is_the_step(self):
        def in_pieces(it):
            for _ in range(10):
                passed, of = it.forward(), it.outputs()
                self.assertEqual((of.y.shape, of.target.dtype, len(of.target)), ((passed.samples, 2), np.int64, 16))
                self.assertEqual(passed.accuracy, np.mean(of.y.argmax(1) == of.target))
                self.assertEqual(it.backward(), passed)
                it.write_gradient("fc1.bias", it.gradient("fc1.bias"))
                self.assertEqual(it.update().step, passed.step)
        with run() as it, run() as other:
            it.step(10)
            in_pieces(other)
            self.assertEqual(it.state.params_xxh3, other.state.params_xxh3)
            other.forward()
            self.refuses(tandem.UsageError, "the forward of step 11 waits", other.predict, X)
            self.assertEqual(other.skip_update().step, 11)
            self.refuses(tandem.UsageError, "call tdm_run_backward first", other.update)
        values = {**JOB, "loss": "mse", "model": {"input": [2], "layers": [{"linear": 3}]}}
        with tandem.Run(values, train=(X, np.ones((256, 3), np.float32)), run_dir=None) as it:
            it.forward()
            self.assertEqual((it.outputs().target == 1).mean(), 1)
        for parallel in ({}, {"mode": "ddp", "device_ids": [0, 1]}):
            with run(["train.accumulate=2"], job=job(**parallel)) as it, \
                    run(["train.accumulate=2"], job=job(**parallel)) as other:
                self.refuses(tandem.UsageError, "call tdm_run_backward first", it.update)
                it.backward()
                self.refuses(tandem.UsageError, "the gradients of step 1 wait", it.step)
                self.assertEqual(it.update().step, 1)
                for k in (1, 2):
                    passed = it.forward()
                    self.assertEqual((passed.step, passed.micro_batch, passed.micro_batches), (2, k, 2))
                    self.assertEqual(len(it.outputs().y), 8 // (2 if parallel else 1))
                    self.assertEqual(it.backward(), passed)
                    if k == 1:
                        self.refuses(tandem.UsageError, "gradients are there of 1 of 2 micro-batches", it.update)
                        self.refuses(tandem.UsageError, "waits for the forward of its next micro-batch", it.backward)
                        self.refuses(tandem.UsageError, "waits for the forward of its next micro-batch", it.step)
                self.assertEqual(it.update().step, 2)
                other.step(2)
                self.assertEqual(it.state.params_xxh3, other.state.params_xxh3)

    def test_a_state_dict_there_and_back(self):
        with run() as it, run(steps=80) as other:
            it.step(5)
            state = it.state_dict()
            self.assertEqual({name: value.shape for name, value in state.items()}, it.shapes)
            other.load_state_dict({name: value.astype(np.float64) for name, value in state.items()})
            self.assertEqual(it.state.params_xxh3, other.state.params_xxh3)
            self.refuses(tandem.UsageError, "missing fc1.bias", other.load_state_dict, {"fc1.weight": state["fc1.weight"]})
            other.load_state_dict({"fc1.bias": np.ones((16,), ">f4"), "more": 1}, strict=False)
            self.assertTrue((other.read("fc1.bias") == 1).all())
            for value in (np.nan, np.inf):
                bad = {**it.state_dict(), "fc2.bias": np.full(2, value)}
                self.refuses(tandem.UsageError, "fc2.bias has numbers that are not finite", it.load_state_dict, bad)
            self.refuses(tandem.UsageError, "shape (16, 2), got (2, 16)", it.write, "fc1.weight", np.zeros((2, 16)))
            self.refuses(tandem.UsageError, "must be float32, got dtype int64", it.write, "fc1.bias", np.zeros(16, int))
            self.refuses(tandem.UsageError, "no tensor 'fc9'", it.read, "fc9")
            other.write("fc1.weight", state["fc1.weight"].T.copy().T)  # not contiguous
            self.assertTrue((other.read("fc1.weight") == state["fc1.weight"]).all())

    def test_buffers_are_in_it(self):
        layers = [{"linear": 4}, {"batchnorm1d": {"name": "norm"}}, {"linear": 2}]
        with run(job={**JOB, "model": {"input": [2], "layers": layers}}) as it:
            it.step(3)
            state = it.state_dict()
            self.assertEqual((state["norm.num_batches_tracked"].shape, int(state["norm.num_batches_tracked"])), ((), 3))
            it.load_state_dict({name: value * 0 for name, value in state.items()})
            self.assertEqual(int(it.read("norm.num_batches_tracked")), 0)

    def test_tensors_of_torch_are_taken_by_what_they_can(self):
        class Tensor:  # as torch.Tensor: no array before detach().cpu().numpy()
            dtype = "torch.float32"
            def detach(self): return self
            def cpu(self): return self
            def numpy(self): return np.full(16, 2, np.float32)
        with run() as it:
            it.write("fc1.bias", Tensor())
            self.assertTrue((it.read("fc1.bias") == 2).all())

    def test_checkpoints_in_folders_and_in_memory(self):
        with run() as it:
            it.set_property("site", "lab 3")
            it.step(5)
            hash_of = it.state.params_xxh3
            raw, path = it.save_bytes(), it.save(WORK / "saved")
            for source in (raw, path):
                it.step(3)
                it.load(source)
                self.assertEqual((it.state.step, it.state.params_xxh3), (5, hash_of))
            self.assertEqual(it.properties, {"site": "lab 3"})
            self.assertIn("replicas 1", it.describe())
            self.refuses(tandem.CheckpointError, "safetensors", it.load, b"junk")
            self.refuses(tandem.CheckpointError, "no such file", it.load, "/nowhere")


class Samples(Case):
    def test_the_same_samples_give_the_same_bits(self):
        wanted = trained()
        self.assertEqual(trained(train=(X.astype(">f8"), Y.astype(">i2"))), wanted)
        self.assertEqual(trained(train=(np.asfortranarray(X), np.repeat(Y, 2)[::2])), wanted)
        self.assertEqual(trained(train=Points()), wanted)
        self.assertEqual(trained({"data.workers": 2}, train=Points()), wanted)
        self.assertEqual(trained(train=list(zip(X, Y))), wanted)
        self.assertEqual(trained(train=(X.astype(float).tolist(), Y.tolist())), wanted)

    def test_bytes_are_transformed(self):
        pixels = (X * 100 + 128).astype(np.uint8)
        scaled = {"data.transform": ["to_float"]}
        self.assertEqual(trained(scaled, train=(pixels, Y)), trained(train=(pixels.astype(np.float32) / 255, Y)))

    def test_arrays_that_do_not_fit(self):
        for words, train in [("must be float32", (X.astype(int), Y)), ("(rows, 2), as the model", (X[:, :1], Y)),
                             ("y must have the shape (256,)", (X, Y[:-1])), ("labels of classes", (X, Y.astype(float))),
                             ("no samples: x has the shape (0, 2)", (X[:0], Y[:0])), ("got generator", (one for one in ())),
                             ("no samples", []), ("train is a pair (x, y), got one array", X),
                             ("train is a pair (x, y), got a dict", {"input": X}),
                             ("train is a pair (x, y), got a tuple of 1", (X,)), ("must be numbers", (np.array([["a", "b"]]), Y[:1]))]:
            self.refuses(tandem.UsageError, words, trained, train=train)
        self.refuses(tandem.DataError, "found 5", trained, train=(X, Y + 5))
        self.refuses(tandem.NumericError, "the loss of step 1 is nan", trained, train=(X * np.nan, Y))
        self.refuses(tandem.ConfigError, "no data.train; name files there, or give train=(x, y)", trained, train=None)
        with tandem.Run(JOB, train=(X, Y), run_dir=None) as it:
            self.refuses(tandem.UsageError, "needs data.eval; add it to the job, or give eval=(x, y)", it.evaluate)

    def test_samples_with_an_identity_are_recognised(self):
        named = Points()
        named.identity = "points 1"
        with run(train=named) as it:
            it.step(2)
            raw = it.save_bytes()
            it.load(raw)
        with run(train=named) as it:
            it.load(raw)
            self.assertEqual(it.state.step, 2)
        named.identity = "points 2"
        with run(train=named) as it:
            self.refuses(tandem.CheckpointError, "identity of the samples was 'points 1' in", it.load, raw)
        named.identity = 3
        self.refuses(tandem.UsageError, "train.identity must be a text, got int", run, train=named)

    def test_an_object_that_fails_or_shrinks(self):
        def shrink(index):
            if index > 200:
                raise IndexError("it shrank")
        self.refuses(IndexError, "it shrank", trained, train=Points(shrink))
        fails = [True]

        def fail(index):
            if fails[0]:
                raise OSError("no disk")
        with run() as it:
            wanted = it.train().params_xxh3
        late = Points()
        with run(train=late) as it:
            late.at = fail
            self.refuses(OSError, "no disk", it.train)
            fails[0] = False
            self.assertEqual(it.train().params_xxh3, wanted)  # a failed read is repeated
        mixed = [(X[i] if i < 9 else X[i, :1], Y[i]) for i in range(256)]
        self.refuses(tandem.DataError, "x must have the shape (2,)", trained, train=mixed)
        self.refuses(tandem.DataError, "must be a pair", trained, train=[X[0][:1]] * 3)


class Misuse(Case):
    def test_faults_of_a_job_are_listed(self):
        fault = self.refuses(tandem.ConfigError, "did you mean `lr`", trained, {"optimizer.lrr": 1, "train.steps": -1})
        self.assertEqual([one["key"] for one in fault.faults], ["optimizer.lrr", "train.steps"])
        self.assertEqual((fault.code, fault.status, fault.category), (3, "E_CONFIG", "bad configuration"))
        (WORK / "fault.yaml").write_text(json.dumps(JOB).replace('"loss"', '\n "los"'))
        fault = self.refuses(tandem.ConfigError, "unknown key 'los'", trained, job=WORK / "fault.yaml")
        for one in (fault, pickle.loads(pickle.dumps(fault))):
            place = one.file, one.line, one.column
            self.assertEqual((str(one), place), (str(fault), (str(WORK / "fault.yaml"), 2, 2)))
        self.refuses(tandem.ConfigError, "nowhere.yaml", trained, job="nowhere.yaml")
        self.refuses(ValueError, "has no '='", trained, "optimizer.lr")

    def test_numbers_and_names_that_c_could_not_take(self):
        with run() as it:
            for call in (lambda: it.step("x"), lambda: it.step(2**70), lambda: it.set_lr("fast"), lambda: it.read(3),
                         lambda: it.set_lr(0.1, 2**40), lambda: it.save(3), lambda: it.load(None), lambda: it.step(-1),
                         lambda: it.set_property("a\0b", "c"), lambda: it.describe(None), lambda: it.predict("x"),
                         lambda: it.save("a\0b"), lambda: trained(steps=1.5), lambda: tandem.Model(b"junk", threads="x")):
                self.assertRaises(tandem.UsageError, call)

    def test_messages_are_in_words_of_python(self):
        with run(run_dir=WORK / "locked") as it:
            for words, call in [("count must be at least 0, got -3", lambda: it.step(-3)),
                                ("the learning rate must be", lambda: it.set_lr(-1)),
                                ("give another run_dir", lambda: run(run_dir=WORK / "locked")),
                                ("on_step must be a function of one event, got int", lambda: run(on_step=3))]:
                with self.assertRaises(tandem.Error) as caught:
                    call()
                self.assertIn(words, str(caught.exception))
                self.assertNotRegex(str(caught.exception), r"tdm_|--\w")

    def test_a_callback_may_read_and_not_train(self):
        def on_step(event):
            for call in (it.step, it.evaluate, it.close, lambda: it.save(WORK / "nested")):
                self.refuses(tandem.UsageError, "the run is busy with train", call)
            self.assertEqual(it.gradient("fc2.bias").shape, it.read("fc2.bias").shape)
            it.set_lr(0.25)
            seen.append(it.state.step)
            return True
        seen = []
        with run(on_step=on_step) as it:
            self.assertEqual(it.train().lr, 0.25)
        self.assertEqual(seen, [1])

    def test_another_thread_may_only_stop(self):
        entered, leave, got = threading.Event(), threading.Event(), []

        def on_step(event):
            entered.set()
            leave.wait()
        with run(on_step=on_step) as it:
            thread = threading.Thread(target=lambda: got.append(it.train()))
            thread.start()
            entered.wait()
            for call in (it.step, it.close, lambda: it.read("fc1.bias"), lambda: it.state):
                self.refuses(tandem.UsageError, "busy with train", call)
            it.stop()
            leave.set()
            thread.join()
            self.assertTrue(got[0].stopped)

    def test_use_after_close(self):
        it = run()
        it.close()
        it.close()
        for call in (it.step, it.train, it.evaluate, it.state_dict, it.stop, lambda: it.predict(X), lambda: it.state):
            self.refuses(tandem.UsageError, "the run is closed", call)

    def test_a_fork_may_not_use_it(self):
        with run() as it:
            child = os.fork()
            if child == 0:
                try:
                    it.close()
                    it.step()
                except tandem.UsageError as refused:
                    os._exit(0 if "this is its fork" in str(refused) else 1)
                os._exit(2)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            it.step()

    def test_a_run_that_only_predicts(self):
        with run(predicts=True, job=job(mode="ddp", device_ids=[0, 1])) as it:
            self.assertEqual(it.predict(X[:3]).shape, (3, 2))
            self.refuses(tandem.UsageError, "opened to predict", it.step)


class Interrupts(Case):
    def interrupted(self, **options):
        folder = WORK / self.id()
        self.assertRaises(KeyboardInterrupt, tandem.train, JOB, {"data.workers": 0}, steps=10**8, run_dir=folder, **options)
        self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)
        return json.loads((folder / "status.json").read_text())["state"], sorted(os.listdir(folder / "checkpoints"))[-1]

    def interrupt(self):
        os.kill(os.getpid(), signal.SIGINT)

    def test_in_a_callback(self):
        got = self.interrupted(train=(X, Y), on_step=lambda event: event.step == 5 and self.interrupt())
        self.assertEqual(got, ("stopped", "step-00000005"))

    def test_in_the_samples(self):
        came = []

        def interrupt_once(index):
            if index == 100 and not came:
                came.append(index)
                self.interrupt()
        self.assertEqual(self.interrupted(train=Points(interrupt_once))[0], "stopped")

    def test_in_an_evaluation(self):
        with run() as it, tandem.Run(JOB, train=(X, Y), eval=Points(), run_dir=None) as other:
            other._sources["eval"].data.at = lambda index: index == 100 and self.interrupt()
            self.assertRaises(KeyboardInterrupt, other.evaluate)
            other._sources["eval"].data.at = lambda index: None
            self.assertEqual(other.evaluate()[:2], it.evaluate()[:2])

    def test_while_no_python_runs(self):
        folder = WORK / self.id()

        def wait_and_interrupt():
            while not (folder / "checkpoints").is_dir():
                time.sleep(0.001)
            self.interrupt()
        threading.Thread(target=wait_and_interrupt, daemon=True).start()
        self.assertEqual(self.interrupted(train=(X, Y))[0], "stopped")


class Ranks(Case):
    def test_ddp_has_the_bits_of_dp(self):
        wanted = trained(job=job(mode="dp", device_ids=[0, 1], dp={"scatter": "strided"}))
        seen = []
        with run(job=job(mode="ddp", device_ids=[0, 1]), on_step=lambda event: seen.append(event.step) and None) as it:
            it.step(3)
            raw, hash_of = it.save_bytes(), it.state.params_xxh3
            it.load_state_dict({name: value * 0 for name, value in it.state_dict().items()})
            it.set_lr(0.5)
            it.step()
            it.evaluate()
            it.set_lr(None)
            it.load(raw)
            self.assertEqual(it.state.params_xxh3, hash_of)
            it.forward()
            self.assertEqual(it.outputs().y.shape, (8, 2))
            it.backward()
            it.write_gradient("fc1.bias", it.gradient("fc1.bias"))
            self.assertEqual(it.update().step, 4)
            self.assertTrue(np.allclose(it.model()(X), it.predict(X), rtol=1e-5, atol=1e-6))
            self.assertGreater(len(it.export(onnx=True)), 300)
            self.assertEqual(it.train().params_xxh3, wanted)
            self.assertEqual(seen[-1], 40)

    def test_a_wrong_call_leaves_the_job_alive(self):
        with run(job=job(mode="ddp", device_ids=[0, 1])) as it, run(job=job(mode="ddp", device_ids=[0, 1])) as other:
            raw, saved = it.save_bytes(), it.save(WORK / "alive")
            calls = [(it.save, WORK / "wrong"), (it.save_bytes,), (it.load, saved), (it.load, raw), (it.export,),
                     (it.model,), (it.train,), (it.step,), (it.evaluate,)]
            it.forward()
            for call in calls + [(it.write, "fc1.bias", it.read("fc1.bias"))]:
                self.refuses(tandem.UsageError, "the forward of step 1 waits", *call)
            it.backward()
            for call in calls[:-1]:
                self.refuses(tandem.UsageError, "the gradients of step 1 wait", *call)
            self.refuses(tandem.UsageError, "group", it.set_lr, 0.1, 7)
            self.assertEqual(it.update().step, 1)
            other.step()
            self.assertEqual(it.state.params_xxh3, other.state.params_xxh3)
            it.load(raw)
            self.assertEqual(it.train().params_xxh3, other.train().params_xxh3)

    def test_callbacks_that_stop_are_not_called_again(self):
        seen, fails = [], False

        def on_step(event):
            seen.append(event.step)
            if event.step >= 7 and fails:
                raise KeyError(event.step)
            return event.step >= 7
        with run(job=job(mode="ddp", device_ids=[0, 1]), on_step=on_step) as it:
            self.assertTrue(it.train().stopped)
            self.assertEqual(seen, [1, 2, 3, 4, 5, 6, 7])
            first, fails = it.state.step + 1, True
            with self.assertRaises(KeyError) as raised:
                it.train()
            self.assertEqual((seen[7:], raised.exception.args), ([first], (first,)))

    def test_a_rank_that_dies_is_named(self):
        def kill(event):
            os.kill(it._ranks.followers[0].process.pid, signal.SIGKILL)
        with run(job=job(mode="ddp", device_ids=[0, 1]), on_step=kill, steps=10**6) as it:
            refused = self.refuses(tandem.UsageError, "group", it.set_lr, 0.1, 7)
            ended = self.refuses(tandem.CommError, "rank 1", it.train)
            self.assertNotIn(str(refused), str(ended))

    def test_samples_that_no_other_process_can_get(self):
        local = type("Local", (Points,), {"__module__": "__main__"})
        self.refuses(tandem.UsageError, "every rank is a process", trained, job=job(mode="ddp", device_ids=[0, 1]),
                     train=local())


if __name__ == "__main__":
    unittest.main()
