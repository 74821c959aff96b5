"""Pumice edits files that h5py wrote, in every format: groups, links and attributes. h5py and the
HDF5 tools read the result, and h5py edits what Pumice left."""

import ctypes
import pathlib
import random
import shutil
import subprocess
import time

import h5py
import numpy as np

from interop import InteropCase

FORMATS = ["earliest", "v108", "v110", "latest"]


def make(path, libver, **options):
    low = libver if libver in ("earliest", "latest") else libver
    return h5py.File(path, "w", libver=(low, "latest"), **options)


def describe(group):
    """Everything of a group: {name: what}, without addresses."""
    found = {}
    for name in group:
        link = group.get(name, getlink=True)
        if isinstance(link, h5py.SoftLink):
            found[name] = ("soft", link.path)
        elif isinstance(link, h5py.ExternalLink):
            found[name] = ("external", link.filename, link.path)
        else:
            item = group[name]
            attributes = {k: np.asarray(v).tolist() for k, v in item.attrs.items()}
            if isinstance(item, h5py.Group):
                found[name] = ("group", attributes, describe(item))
            elif isinstance(item, h5py.Dataset):
                found[name] = ("dataset", attributes, item[()].tolist())
            else:
                found[name] = ("datatype", attributes)
    return found


class Objects(InteropCase):
    def tools(self, path):
        """The HDF5 tools accept the file."""
        for command in (["h5dump", "-H"], ["h5stat"], ["h5ls", "-r"]):
            if shutil.which(command[0]) is None:
                continue
            done = subprocess.run([*command, str(path)], capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, f"{command}: {done.stderr[-500:]}")

    def test_links_are_added_and_removed_in_groups_of_every_format(self):
        for libver in FORMATS:
            for count in (0, 3, 8, 9, 40, 700):
                with self.subTest(libver=libver, count=count):
                    path = self.directory / f"{libver}{count}.h5"
                    with make(path, libver) as file:
                        group = file.create_group("g")
                        for number in range(count):
                            group.create_group(f"old{number}")
                        group["data"] = np.arange(4)
                        superblock = file.id.get_create_plist().get_version()[0]
                    spec = self.specification(f"s{libver}{count}")
                    wanted = {f"old{n}" for n in range(count)} | {"data"}
                    for number in range(30):
                        spec.group(f"g/new{number}")
                        wanted.add(f"new{number}")
                    spec.op("soft", path="g/soft", target="data")
                    spec.op("hard", path="g/hard", target="g/data")
                    spec.op("rename", path="g/new3", to="g/renamed")
                    wanted ^= {"new3", "renamed", "soft", "hard"}
                    for number in range(0, count, 2):
                        spec.op("unlink", path=f"g/old{number}")
                        wanted.discard(f"old{number}")
                    self.edit(spec, path)
                    with h5py.File(path, "r") as file:
                        self.assertEqual(set(file["g"]), wanted)
                        self.assertEqual(len(file["g"]), len(wanted))
                        self.assertEqual(file["g/hard"], file["g/data"])
                        self.assertEqual(h5py.h5o.get_info(file["g/data"].id).rc, 2)
                        self.assertEqual(file["g/soft"][()].tolist(), [0, 1, 2, 3])
                        for name in wanted:
                            file["g"][name]
                        found = file.id.get_create_plist().get_version()[0]
                        self.assertEqual(found, superblock)
                    self.tools(path)

    def test_all_links_go_and_come_back(self):
        for libver in FORMATS:
            with self.subTest(libver=libver):
                path = self.directory / f"{libver}.h5"
                with make(path, libver) as file:
                    for number in range(300):
                        file.create_group(f"g{number:03}")
                spec = self.specification(libver)
                order = list(range(300))
                random.Random(5).shuffle(order)
                for number in order[:295]:
                    spec.op("unlink", path=f"g{number:03}")
                spec.op("reopen", path="/")
                for number in order[295:]:
                    spec.op("unlink", path=f"g{number:03}")
                spec.op("reopen", path="/")
                for number in order[:100]:
                    spec.group(f"again{number}")
                self.edit(spec, path)
                with h5py.File(path, "r") as file:
                    self.assertEqual(set(file), {f"again{n}" for n in order[:100]})
                self.tools(path)

    def test_h5py_goes_on_where_pumice_stopped(self):
        for libver in FORMATS:
            with self.subTest(libver=libver):
                path = self.directory / f"{libver}.h5"
                with make(path, libver) as file:
                    file.create_group("g")
                spec = self.specification(libver)
                for number in range(200):
                    spec.group(f"g/p{number}")
                for number in range(50):
                    spec.attribute("g", f"a{number}", np.arange(number))
                for number in range(0, 200, 3):
                    spec.op("unlink", path=f"g/p{number}")
                self.edit(spec, path)
                with h5py.File(path, "r+") as file:
                    group = file["g"]
                    for number in range(300):
                        group.create_group(f"h{number}")
                    for number in range(1, 200, 3):
                        del group[f"p{number}"]
                    for number in range(0, 50, 2):
                        del group.attrs[f"a{number}"]
                    for number in range(60):
                        group.attrs[f"b{number}"] = "text" * number
                with h5py.File(path, "r") as file:
                    group = file["g"]
                    wanted = {f"h{n}" for n in range(300)} | {f"p{n}" for n in range(2, 200, 3)}
                    self.assertEqual(set(group), wanted)
                    for name in wanted:
                        group[name]
                    for number in range(1, 50, 2):
                        self.assertEqual(group.attrs[f"a{number}"].tolist(), list(range(number)))
                    for number in range(60):
                        self.assertEqual(group.attrs[f"b{number}"], "text" * number)
                manifest = self.read(path)
                self.assertIn("/g/h299", manifest.objects)
                self.tools(path)

    def test_attributes_are_added_replaced_renamed_and_removed_on_every_object(self):
        for libver in FORMATS:
            for tracked in (False, True):
                with self.subTest(libver=libver, tracked=tracked):
                    path = self.directory / f"{libver}{tracked}.h5"
                    with make(path, libver, track_order=tracked) as file:
                        group = file.create_group("g", track_order=tracked)
                        data = file.create_dataset("d", data=np.arange(5), track_order=tracked)
                        file["t"] = np.dtype("<i4")
                        for item in (group, data, file["t"]):
                            for number in range(20 if item is group else 5):
                                item.attrs[f"old{number}"] = number
                            item.attrs["text"] = "some text"
                    wanted = {}
                    spec = self.specification(f"{libver}{tracked}")
                    for item, count in (("g", 20), ("d", 5), ("t", 5)):
                        values = {f"old{n}": n for n in range(count)}
                        values["text"] = "some text"
                        for number in range(12):
                            value = np.arange(number * 40, dtype="<f8")
                            spec.attribute(item, f"new{number}", value)
                            values[f"new{number}"] = value.tolist()
                        spec.attribute(item, "old2", np.array([7, 8, 9]))
                        values["old2"] = [7, 8, 9]
                        spec.op("remove_attribute", path=item, name="old1")
                        del values["old1"]
                        if item != "t":
                            spec.op("rename_attribute", path=item, name="old3", to="renamed")
                            values["renamed"] = values.pop("old3")
                        wanted[item] = values
                    self.edit(spec, path)
                    with h5py.File(path, "r") as file:
                        for item, values in wanted.items():
                            attributes = file[item].attrs
                            found = {k: np.asarray(v).tolist() for k, v in attributes.items()}
                            self.assertEqual(found, values, item)
                            for name in values:
                                attributes[name]
                        if tracked:
                            names = list(file["g"].attrs)
                            self.assertEqual(names[:3], ["old0", "old2", "renamed"])
                            self.assertEqual(names[-1], "new11")
                        self.assertEqual(file["d"][()].tolist(), [0, 1, 2, 3, 4])
                    self.tools(path)

    def test_large_attributes_are_stored_densely(self):
        path = self.directory / "large.h5"
        with make(path, "v110") as file:
            file.create_group("g")
        spec = self.specification()
        big = np.arange(50_000, dtype="<f8")
        spec.attribute("g", "big", big)
        spec.attribute("g", "small", np.array(3))
        spec.op("reopen", path="/")
        for number in range(5):
            spec.attribute("g", f"big{number}", big + number)
        spec.op("reopen", path="/")
        spec.op("remove_attribute", path="g", name="big")
        self.edit(spec, path)
        with h5py.File(path, "r") as file:
            attributes = file["g"].attrs
            self.assertEqual(set(attributes), {"small"} | {f"big{n}" for n in range(5)})
            for number in range(5):
                np.testing.assert_array_equal(attributes[f"big{number}"], big + number)
        self.tools(path)

    def test_creation_order_is_tracked_in_new_groups(self):
        spec = self.specification()
        for kind, count in (("few", 5), ("many", 100)):
            spec.op(
                "group_with", path=kind, track_order=True, track_attribute_order=True
            )
            order = list(range(count))
            random.Random(3).shuffle(order)
            for number in order:
                spec.group(f"{kind}/m{number}")
                spec.attribute(kind, f"a{number}", np.array(number))
            spec.op("unlink", path=f"{kind}/m1")
        path = self.write(spec)
        for _ in range(2):
            with h5py.File(path, "r+") as file:
                for kind, count in (("few", 5), ("many", 100)):
                    order = list(range(count))
                    random.Random(3).shuffle(order)
                    wanted = [f"m{n}" for n in order if n != 1]
                    self.assertEqual([n for n in file[kind] if n[0] == "m"], wanted)
                    self.assertEqual(list(file[kind].attrs), [f"a{n}" for n in order])
                    file[kind].create_group(f"by_h5py{len(file[kind])}")
        self.tools(path)

    def test_links_that_symbol_tables_cannot_have_make_a_group_new_style(self):
        path = self.directory / "old.h5"
        with make(path, "earliest") as file:
            for number in range(5):
                file.create_group(f"a/g{number}")
                file.create_group(f"b/g{number}")
            file["x"] = 1
        spec = self.specification()
        spec.op("external", path="a/out", file="other.h5", target="/x")
        spec.group("b/größe")
        spec.op("external", path="root", file="other.h5", target="/y")
        self.edit(spec, path)
        with h5py.File(path, "r+") as file:
            link = file["a"].get("out", getlink=True)
            self.assertEqual((link.filename, link.path), ("other.h5", "/x"))
            self.assertIn("größe", file["b"])
            self.assertEqual(len(file["a"]), 6)
            self.assertEqual(file["x"][()], 1)
            file.create_group("more")
        with h5py.File(path, "r") as file:
            self.assertEqual(set(file), {"a", "b", "x", "root", "more"})
        self.tools(path)

    def test_deleting_gives_space_back(self):
        for libver in FORMATS:
            with self.subTest(libver=libver):
                path = self.directory / f"{libver}.h5"
                with make(path, libver) as file:
                    file.create_group("keep")
                sizes = []
                for step in range(4):
                    spec = self.specification(f"{libver}{step}")
                    for number in range(100):
                        spec.group(f"big/sub/g{number}")
                        spec.attribute(f"big/sub/g{number}", "a", np.arange(100))
                    spec.op("flush", path="/")
                    spec.op("unlink", path="big")
                    self.edit(spec, path)
                    sizes.append(path.stat().st_size)
                self.assertLess(sizes[-1], 20_000, sizes)
                with h5py.File(path, "r") as file:
                    self.assertEqual(list(file), ["keep"])

    def test_names_of_removed_links_give_their_room_back(self):
        """In the heap of names of an old group, which stays."""
        for by_h5py in (False, True):
            path = self.directory / f"names-{by_h5py}.h5"
            with make(path, "earliest") as file:
                file.create_group("group")
            sizes = []
            for step in range(5):
                names = [f"a name that is found in step {step} only, {number}" for number in range(60)]
                for removing in (False, True):
                    spec = self.specification(f"names-{by_h5py}-{step}-{removing}")
                    for name in names:
                        spec.op("unlink" if removing else "soft", path=f"group/{name}", target="/" + name)
                    if not removing or not by_h5py:
                        self.edit(spec, path)
                        continue
                    with h5py.File(path, "r+") as file:
                        for name in names:
                            del file["group"][name]
                with h5py.File(path) as file:
                    sizes.append(h5py.h5o.get_info(file["group"].id).meta_size.obj.heap_size)
            self.assertEqual(len(set(sizes)), 1, sizes)

    def test_everything_survives_random_edits(self):
        for libver in FORMATS:
            with self.subTest(libver=libver):
                self.random_edits(libver)

    def random_edits(self, libver):
        draw = random.Random(libver)
        path = self.directory / f"random-{libver}.h5"
        with make(path, libver) as file:
            for number in range(20):
                group = file.create_group(f"g{number}")
                group.attrs["n"] = number
        for step in range(6):
            with h5py.File(path, "r") as file:
                wanted = describe(file)
            spec = self.specification(f"random-{libver}-{step}")
            for number in range(60):
                self.random_operation(draw, spec, wanted, f"{step}x{number}")
            self.edit(spec, path)
            with h5py.File(path, "r") as file:
                self.assertEqual(describe(file), wanted, step)
        self.tools(path)

    def random_operation(self, draw, spec, tree, name):
        """An operation on a random group, and the same on the model."""
        group, path = tree, ""
        while True:
            inner = [n for n, what in group.items() if what[0] == "group"]
            if not inner or draw.random() < 0.4:
                break
            chosen = draw.choice(inner)
            group, path = group[chosen][2], f"{path}/{chosen}"
        choice = draw.random()
        if choice < 0.4 or not group:
            spec.group(f"{path}/new{name}")
            group[f"new{name}"] = ("group", {}, {})
        elif choice < 0.5:
            target = "x" * draw.randrange(1, 60)
            spec.op("soft", path=f"{path}/soft{name}", target=target)
            group[f"soft{name}"] = ("soft", target)
        elif choice < 0.65:
            victim = draw.choice(list(group))
            spec.op("unlink", path=f"{path}/{victim}")
            del group[victim]
        elif choice < 0.75:
            victim = draw.choice(list(group))
            spec.op("rename", path=f"{path}/{victim}", to=f"{path}/moved{name}")
            group[f"moved{name}"] = group.pop(victim)
        else:
            items = [n for n, what in group.items() if what[0] == "group"]
            if not items:
                return
            item = draw.choice(items)
            attributes = group[item][1]
            if attributes and draw.random() < 0.4:
                victim = draw.choice(list(attributes))
                spec.op("remove_attribute", path=f"{path}/{item}", name=victim)
                del attributes[victim]
            else:
                attribute = f"a{draw.randrange(15)}"
                value = np.arange(draw.randrange(300))
                spec.attribute(f"{path}/{item}", attribute, value)
                attributes[attribute] = value.tolist()

    def test_comments_and_times_of_change(self):
        for libver in FORMATS:
            with self.subTest(libver):
                path = self.directory / f"comments-{libver}.h5"
                with make(path, libver) as file:
                    for name in ("group", "other"):
                        file.create_group(name)
                        h5py.h5o.set_comment(file[name].id, b"of h5py")
                    file["type"] = np.dtype("i4")
                    file.create_dataset("timed", data=np.arange(4), track_times=True)
                    file.create_dataset("untimed", data=np.arange(4), track_times=False)
                # Times are in seconds: one must pass.
                before = int(time.time()) + 1
                time.sleep(max(0, before - time.time()))
                specification = self.specification(f"comments-{libver}")
                specification.op("comment", path="group", text="of Pumice, and longer than before")
                specification.op("comment", path="other")
                specification.op("comment", path="untimed", text="a dataset")
                specification.op("comment", path="type", text="a type")
                specification.attribute("timed", "a", np.arange(3))
                specification.create("dense", "new", "<i4", (3,), track_times=True)
                self.edit(specification, path)
                with h5py.File(path, "r+") as file:
                    comments = {name: file.id.get_comment(name.encode()) for name in file}
                    wanted = {"group": b"of Pumice, and longer than before"}
                    wanted |= {"untimed": b"a dataset", "type": b"a type"}
                    self.assertEqual({k: v for k, v in comments.items() if v}, wanted)
                    times = {name: h5py.h5g.get_objinfo(file.id, name.encode()).mtime for name in file}
                    self.assertEqual(times["untimed"], 0)
                    for name in ("timed", "new"):
                        self.assertGreaterEqual(times[name], before)
                        self.assertLessEqual(times[name], time.time() + 1)
                    h5py.h5o.set_comment(file["group"].id, b"again")
                with h5py.File(path) as file:
                    self.assertEqual(file.id.get_comment(b"group"), b"again")

    def with_cache_image(self, path):
        """Lets libhdf5 leave its metadata in a cache image, which h5py has no call for."""

        class Settings(ctypes.Structure):
            _fields_ = [
                ("version", ctypes.c_int),
                ("generate_image", ctypes.c_bool),
                ("save_resize_status", ctypes.c_bool),
                ("entry_ageout", ctypes.c_int),
            ]

        folder = pathlib.Path(h5py.__file__).parent.parent / "h5py.libs"
        libraries = [path for path in folder.glob("libhdf5*") if "_hl" not in path.name]
        if not libraries:
            self.skipTest("no libhdf5 beside h5py")
        library = ctypes.CDLL(str(libraries[0]))
        access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
        access.set_libver_bounds(h5py.h5f.LIBVER_LATEST, h5py.h5f.LIBVER_LATEST)
        access.set_fclose_degree(h5py.h5f.CLOSE_STRONG)
        settings = Settings(1, True, False, -1)
        done = library.H5Pset_mdc_image_config(ctypes.c_int64(access.id), ctypes.byref(settings))
        self.assertEqual(done, 0)
        return h5py.File(h5py.h5f.open(bytes(path), h5py.h5f.ACC_RDWR, access))

    def test_a_file_with_a_metadata_cache_image_is_edited(self):
        path = self.directory / "image.h5"
        with h5py.File(path, "w", libver="latest") as file:
            file["chunked"] = np.arange(100)
        with self.with_cache_image(path) as file:
            for number in range(40):
                file.create_group(f"group {number}").attrs["number"] = number
            file.create_dataset("rows", (100, 3), "i4", chunks=(7, 3), maxshape=(None, 3))
            file["rows"][...] = np.arange(300).reshape(100, 3)
        self.assertIn(b"MDCI", path.read_bytes())
        specification = self.specification()
        specification.op("unlink", path="group 7")
        specification.op("resize", path="rows", shape=[101, 3])
        specification.write_block("rows", [100, 0], np.array([[7, 8, 9]], "i4"))
        specification.attribute("group 8", "more", np.arange(5))
        self.edit(specification, path)
        with h5py.File(path, "r+") as file:
            self.assertEqual(len(file), 41)
            self.assertNotIn("group 7", file)
            for number in set(range(40)) - {7}:
                self.assertEqual(file[f"group {number}"].attrs["number"], number)
            self.same_bytes(file["group 8"].attrs["more"], np.arange(5))
            wanted = np.vstack([np.arange(300).reshape(100, 3), [[7, 8, 9]]]).astype("i4")
            self.same_bytes(file["rows"][...], wanted)
            file["further"] = 1
        self.assertIn("further", self.names(path))

    def names(self, path):
        return {name.lstrip("/") for name in self.read(path).objects}
