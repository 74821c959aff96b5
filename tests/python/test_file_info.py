"""What a file says of itself as a whole: h5py writes it, the pumice command prints it."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import h5py

from interop import program

STRATEGIES = {"fsm": "FSM_AGGR", "page": "PAGE", "aggregate": "AGGR", "none": "NONE"}


class FileInfo(unittest.TestCase):
    def setUp(self):
        self.binary = program("PUMICE", "pumice")
        if self.binary is None:
            self.skipTest("the pumice command is not built")
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="pumice-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def shown(self, path):
        command = [str(self.binary), "dump", "-B", "-H", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return dict(re.findall(r"^   ([A-Z_]+) (\S+)$", done.stdout, re.MULTILINE))

    def test_file_space_settings(self):
        for libver in ("earliest", "latest"):
            for strategy, name in STRATEGIES.items():
                with self.subTest(libver=libver, strategy=strategy):
                    path = self.directory / f"{libver}-{strategy}.h5"
                    options = {"fs_strategy": strategy, "fs_page_size": 8192, "libver": libver}
                    if strategy in ("fsm", "page"):
                        options |= {"fs_persist": True, "fs_threshold": 5}
                    with h5py.File(path, "w", **options) as file:
                        file["x"] = range(10)
                    with h5py.File(path) as file:
                        creation = file.id.get_create_plist()
                        _, persist, threshold = creation.get_file_space_strategy()
                        page_size = creation.get_file_space_page_size()
                    shown = self.shown(path)
                    self.assertEqual(shown["FILE_SPACE_STRATEGY"], "H5F_FSPACE_STRATEGY_" + name)
                    self.assertEqual(shown["FREE_SPACE_PERSIST"], str(bool(persist)).upper())
                    self.assertEqual(int(shown["FREE_SPACE_SECTION_THRESHOLD"]), threshold)
                    self.assertEqual(int(shown["FILE_SPACE_PAGE_SIZE"]), page_size)


if __name__ == "__main__":
    unittest.main()
