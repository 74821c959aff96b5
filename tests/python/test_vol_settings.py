"""The connector's settings (the text behind its name), and chunk caches of access lists, in stock h5py."""

import unittest

from vol import Connector

# What these programs begin with: statistics of the shared cache.
STATISTICS = '''
    class Statistics(ctypes.Structure):
        _fields_ = [(name, ctypes.c_uint64) for name in
                    "hits misses evictions write_backs bytes_read bytes_written prefetched prefetch_useful resident "
                    "dirty peak limit".split()]

    def statistics(id):
        found = Statistics()
        assert rfc().pumice_vol_cache_stats(ctypes.c_int64(id), ctypes.byref(found)) >= 0
        return found
'''


class Settings(Connector):
    def test_the_cache_is_as_large_as_the_settings_say(self):
        found = self.run_program("""
            with h5py.File(path, "w") as file:
                values = np.arange(1 << 20, dtype="f8").reshape(1 << 10, -1)
                made = file.create_dataset("x", data=values, chunks=(16, 1 << 10), compression="gzip")
                assert (made[()] == values).all()
                now = statistics(file.id.id)
                print(now.limit, now.resident <= now.limit, now.evictions > 0)
            """, head=STATISTICS, connector="pumice cache=1M;threads=2;durability=power")
        self.assertEqual(found, "1048576 True True")

    def test_settings_come_back_as_text(self):
        found = self.run_program("""
            with h5py.File(path, "w") as file:
                library, text, info = libhdf5("h5py"), ctypes.c_char_p(), ctypes.c_void_p()
                access = file.id.get_access_plist()
                assert library.H5Pget_vol_info(ctypes.c_int64(access.id), ctypes.byref(info)) >= 0
                connector = ctypes.c_int64()
                assert library.H5Pget_vol_id(ctypes.c_int64(access.id), ctypes.byref(connector)) >= 0
                assert library.H5VLconnector_info_to_str(info, connector, ctypes.byref(text)) >= 0
                assert library.H5VLfree_connector_info(connector, info) >= 0
                print(text.value.decode())
            """, connector="pumice threads=3, cache=2K")
        self.assertEqual(found, "cache=2048;threads=3")

    def test_a_setting_that_is_not_understood_is_told(self):
        for setting, part in (("cache=much", "cache is a number of bytes"), ("cash=1M", "is not known")):
            self.assertIn(part, self.run_program("h5py.File(path, 'w')", connector=f"pumice {setting}", fails=True))

    def test_programs_choose_the_connector_by_a_call(self):
        found = self.run_program("""
            access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
            functions = rfc()
            assert functions.pumice_vol_set_fapl(ctypes.c_int64(access.id), b"cache=3M") >= 0
            with h5py.File(h5py.h5f.create(path.encode(), h5py.h5f.ACC_TRUNC, fapl=access)) as file:
                file["x"] = [1, 2, 3]
                assert file["x"][1] == 2
                print(statistics(file.id.id).limit, calls(file) > 3)
            assert functions.pumice_vol_set_fapl(ctypes.c_int64(access.id), b"cache=?") < 0
            """, head=STATISTICS, connector="pumice")
        self.assertEqual(found, "3145728 True")

    def test_the_connector_stays_in_memory_until_its_threads_have_ended(self):
        # libhdf5 closes plugins when it ends itself; their threads have not ended then.
        self.run_program("""
            import _ctypes
            _ctypes.dlclose(rfc()._handle)
            assert "libpumice_vol.so" in open("/proc/self/maps").read()
            """, connector=None)

    def test_a_chunk_cache_of_zero_lets_a_dataset_pass_the_cache_by(self):
        found = self.run_program("""
            with h5py.File(path, "w") as file:
                file.create_dataset("x", data=np.arange(1 << 16), chunks=(1 << 12,), compression="gzip")
            for options in ({}, {"rdcc_nbytes": 0}, {"rdcc_nbytes": 1 << 22}):
                with h5py.File(path, "r", **options) as file:
                    opened = file["x"]
                    assert opened[100] == opened[()][100] == opened[100]
                    print(statistics(opened.id.id).hits > 0, end=" ")
                with h5py.File(path, "r") as file:
                    access = h5py.h5p.create(h5py.h5p.DATASET_ACCESS)
                    if options:
                        access.set_chunk_cache(521, options["rdcc_nbytes"], 0.5)
                    made = h5py.h5d.open(file.id, b"x", access)
                    opened = h5py.Dataset(made)
                    assert opened[100] == opened[()][100] == opened[100]
                    print(statistics(made.id).hits > 0, end=" ")
            """, head=STATISTICS)
        self.assertEqual(found.split(), ["True", "True", "False", "False", "True", "True"])


if __name__ == "__main__":
    unittest.main()
