"""Ctrl-C while the library works. The main thread is in C then, where Python's own handler does not run before the call
returns, and an exception of the handler in a callback would be lost. So a call on the main thread has a handler of its
own, if Ctrl-C means KeyboardInterrupt as usual, which asks the run to stop; and a long one has a thread that hears of
the signal at once. KeyboardInterrupt follows when the call has returned. All is as before then. Other threads get no
signals; a handler of the program's own stays.
"""
from __future__ import annotations

import os
import signal
import threading


class Interrupts:
    """A context for one call. `stop` is called when Ctrl-C comes; without one, calling the object tells samples that
    they must fail, as nothing else ends the call. While `is_in_callback`, the program's own code runs, and
    KeyboardInterrupt is raised in it as usual: whoever called it catches that; if it comes too late for that, it comes
    behind the call."""

    def __init__(self, stop=None, is_long: bool = False, is_in_callback=lambda: False):
        self.stop, self.is_long, self.is_in_callback = stop, is_long, is_in_callback
        self.came, self.is_active, self.watched = False, False, None

    def __call__(self) -> bool:
        return self.came and self.stop is None

    def _note(self) -> None:
        self.came = True
        if self.stop is not None:
            self.stop()

    def _on_signal(self, number, frame) -> None:
        self._note()
        if self.is_in_callback():
            raise KeyboardInterrupt

    def __enter__(self):
        is_main = threading.current_thread() is threading.main_thread()
        self.is_active = is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self.is_active:
            signal.signal(signal.SIGINT, self._on_signal)
            if self.is_long:
                self.watched = _Watch(self._note)
        return self

    def __exit__(self, kind, value, traceback) -> None:
        if self.watched is not None:
            self.watched.end()
        if self.is_active:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if self.came and not (kind and issubclass(kind, KeyboardInterrupt)):
            raise KeyboardInterrupt from None


class _Watch:
    """A thread that reads the numbers of signals which Python writes into a pipe as they come."""

    def __init__(self, act):
        self.act = act
        self.read_end, self.write_end = os.pipe()
        os.set_blocking(self.write_end, False)
        self.before = signal.set_wakeup_fd(self.write_end, warn_on_full_buffer=False)
        self.thread = threading.Thread(target=self._listen, name="tandem-signals", daemon=True)
        self.thread.start()

    def _listen(self) -> None:
        while True:
            for number in os.read(self.read_end, 64):
                if number == 0:
                    return
                if number == signal.SIGINT:
                    self.act()
                if self.before >= 0:  # whoever listened before, such as asyncio, hears of it, too
                    try:
                        os.write(self.before, bytes([number]))
                    except OSError:
                        pass

    def end(self) -> None:
        signal.set_wakeup_fd(self.before)
        os.write(self.write_end, b"\0")
        self.thread.join()
        os.close(self.read_end)
        os.close(self.write_end)
