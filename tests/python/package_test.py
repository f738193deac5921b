"""The package as a file: the layouts of its structs are the compiler's, it loads what it says, its wheel is whole."""
import base64
import ctypes
import hashlib
import os
import subprocess
import sys
import unittest
import zipfile

from support import BUILD, ROOT, WORK, Case, python, tandem

from tandem import _declared, _library


class Layouts(Case):
    def test_structs_enumerators_and_initial_values_are_those_of_the_headers(self):
        declare = [sys.executable, "-B", ROOT / "runtime/python/declare.py", ROOT / "runtime/include", "--check"]
        source = subprocess.run(declare, check=True, capture_output=True, text=True).stdout
        include = f"-I{ROOT / 'runtime/include'}"
        subprocess.run([os.environ["CC"], "-x", "c", "-", include, "-o", WORK / "layouts"], input=source, text=True, check=True)
        lines = subprocess.run([WORK / "layouts"], check=True, capture_output=True, text=True).stdout.splitlines()
        self.assertGreater(len(lines), 200)
        for line in lines:
            name, *numbers = line.split()
            self.assertEqual(_ours(name, numbers), numbers, name)

    def test_every_function_is_in_the_library(self):
        for name in _declared.FUNCTIONS:
            self.assertTrue(hasattr(_library.lib(), name), name)

    def test_every_status_has_an_exception(self):
        from tandem import errors
        for number, (name, text) in _declared.STATUSES.items():
            if number:
                kind = errors.BY_CODE[number]
                self.assertEqual((kind.code, kind.status, kind.category), (number, name, text))


def _ours(name, numbers):
    """What the package has for a line of the program."""
    if name.endswith("_INIT"):
        struct = getattr(_declared, name[:-5].lower())
        return [bytes(_library.new(struct)).hex()] if not _has_text(struct) else numbers
    struct, _, member = name.partition(".")
    value = getattr(_declared, struct)
    if not isinstance(value, type):
        return [str(value)]
    if not member:
        return [str(ctypes.sizeof(value))]
    place = getattr(value, member)
    return [str(place.offset), str(place.size)]


def _has_text(struct):
    """The address of a text is not known beforehand."""
    return any(isinstance(value, bytes) for value in _declared.INITIAL.get(struct, {}).values())


class Loading(Case):
    def test_the_import_alone_loads_neither_numpy_nor_ctypes(self):
        code = "import sys, tandem; print([name for name in ('numpy', 'ctypes', 'json') if name in sys.modules])"
        self.assertEqual(python(code), (0, "[]\n"))

    def test_names_are_those_of_the_package(self):
        self.assertIn("Run", dir(tandem))
        self.refuses(AttributeError, "no attribute 'nothing'", getattr, tandem, "nothing")

    def test_a_missing_library_is_told(self):
        code, said = python("import tandem; tandem.Model", TANDEM_LIBRARY="/nowhere/libtandem.so")
        self.assertEqual(code, 0, said)
        code, said = python("import tandem; tandem.Model('m')", TANDEM_LIBRARY="/nowhere/libtandem.so")
        self.assertIn("ImportError: TANDEM_LIBRARY names /nowhere/libtandem.so, which is no file", said)
        code, said = python("import tandem; tandem.Model('m')", TANDEM_LIBRARY=sys.executable)
        self.assertIn("ImportError: ", said)

    def test_the_module_is_the_command(self):
        code, said = python("import runpy, sys; sys.argv = ['tandem', '--version']; runpy.run_module('tandem', run_name='__main__')")
        self.assertEqual((code, said), (0, f"tandem {tandem.__version__}\n"))


class Wheel(Case):
    def test_a_wheel_is_whole_and_made_again_the_same(self):
        made = [self._make(WORK / folder) for folder in ("first", "second")]
        self.assertEqual(made[0].read_bytes(), made[1].read_bytes())
        self.assertRegex(made[0].name, rf"^tandem-{tandem.__version__}-py3-none-manylinux_2_\d+_\w+\.whl$")
        with zipfile.ZipFile(made[0]) as archive:
            names = archive.namelist()
            record = archive.read(f"tandem-{tandem.__version__}.dist-info/RECORD").decode().splitlines()
            self.assertEqual([row.split(",")[0] for row in record], names)
            for name, sha, size in (row.split(",") for row in record[:-1]):
                raw = archive.read(name)
                digest = base64.urlsafe_b64encode(hashlib.sha256(raw).digest()).decode().rstrip("=")
                self.assertEqual((sha, size), (f"sha256={digest}", str(len(raw))))
            for name in ("tandem/__init__.py", "tandem/_declared.py", "tandem/_native/lib/libtandem.so.0", "tandem/py.typed"):
                self.assertIn(name, names)
            self.assertEqual(archive.getinfo("tandem/_native/bin/tandem").external_attr >> 16 & 0o777, 0o755)

    def _make(self, folder):
        command = [sys.executable, "-B", ROOT / "tools/wheel", "--bare", "--build", BUILD, "--out", folder]
        subprocess.run(command, check=True, capture_output=True)
        return next(folder.glob("*.whl"))


if __name__ == "__main__":
    unittest.main()
