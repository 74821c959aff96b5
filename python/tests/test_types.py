"""Every dtype goes both ways between pumice and h5py."""

import h5py
import numpy as np
import pytest

import pumice

PLAIN = ["i1", "u1", "<i2", ">i2", "<u4", ">u4", "<i8", ">u8", "<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "<c8", ">c16",
         "?", "S7", "g", "V5"]  # fmt: skip


def values(dtype, shape):
    """Values of a dtype that are not all alike."""
    numbers = np.arange(1, 1 + int(np.prod(shape)))
    if dtype.kind == "S":
        return np.array([str(number).encode() for number in numbers], dtype).reshape(shape)
    if dtype.kind == "V":
        return np.array([bytes([number % 251] * dtype.itemsize) for number in numbers], dtype).reshape(shape)
    if dtype.kind == "c":
        return (numbers + 0.5j * numbers).astype(dtype).reshape(shape)
    return (numbers % 100).astype(dtype).reshape(shape)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("shape", [(), (5,), (3, 4)])
def test_plain_elements_come_back(path, ways, name, shape):
    writer, reader = ways
    data = values(np.dtype(name), shape)
    with writer.File(path, "w") as file:
        file.create_dataset("x", data=data)
        file.attrs["x"] = data
    with reader.File(path, "r") as file:
        assert file["x"].dtype == data.dtype
        np.testing.assert_array_equal(file["x"][()], data)
        np.testing.assert_array_equal(file.attrs["x"], data)


def test_structs_come_back(path, ways):
    writer, reader = ways
    inner = np.dtype([("u", ">i2"), ("v", "<f8", (2,))])
    dtype = np.dtype([("a", "<i4"), ("b", "S3"), ("c", inner), ("d", "?"), ("e", "<c8")], align=True)
    data = np.zeros(4, dtype)
    data["a"], data["b"], data["d"] = np.arange(4), [b"x", b"yy", b"zzz", b""], [1, 0, 1, 0]
    data["c"]["u"], data["c"]["v"], data["e"] = -np.arange(4), np.arange(8).reshape(4, 2), 1 + 2j
    with writer.File(path, "w") as file:
        file["x"] = data
        file["x"]["a", 1:3] = [70, 80]
        file["x"][3] = data[0]
    data["a"][1:3] = [70, 80]
    data[3] = data[0]
    with reader.File(path, "r") as file:
        assert file["x"].dtype == h5py.File(path, "r")["x"].dtype
        np.testing.assert_array_equal(file["x"][...], data)
        np.testing.assert_array_equal(file["x"]["c"]["v"], data["c"]["v"])
        np.testing.assert_array_equal(file["x"]["a", "d"], data[["a", "d"]])
        np.testing.assert_array_equal(file["x"].fields(["b"])[1:], data[["b"]][1:])


TEXTS = ["", "a", "longer text", "Ärger", "石", "x" * 3000]


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_strings_of_any_length_come_back(path, ways, encoding):
    writer, reader = ways
    texts = [text for text in TEXTS if encoding == "utf-8" or text.isascii()]
    with writer.File(path, "w") as file:
        data = file.create_dataset("x", (len(texts), 2), writer.string_dtype(encoding))
        data[:, 0] = texts
        data[1] = [b"bytes", "text"]
        file.attrs["list"] = texts
        file.attrs["one"] = texts[-1]
    with reader.File(path, "r") as file:
        expected = [text.encode() for text in texts]
        expected[1] = b"bytes"
        assert file["x"][:, 0].tolist() == expected
        assert file["x"].asstr()[1, 1] == "text"
        assert file["x"][0, 1] == b""
        assert list(file.attrs["list"]) == texts
        assert file.attrs["one"] == texts[-1]
        assert reader.check_string_dtype(file["x"].dtype).encoding == encoding


def test_numpy_strings_come_back(path):
    texts = np.array(TEXTS, dtype=np.dtypes.StringDType())
    with pumice.File(path, "w") as file:
        file["x"] = texts
        found = file["x"].astype("T")[...]
        assert found.dtype == texts.dtype
        np.testing.assert_array_equal(found, texts)
    with h5py.File(path, "r") as file:
        assert file["x"].asstr()[...].tolist() == TEXTS


def test_sequences_come_back(path, ways):
    writer, reader = ways
    with writer.File(path, "w") as file:
        data = file.create_dataset("x", (4,), writer.vlen_dtype("<i2"))
        data[0] = [1, 2, 3]
        data[1] = np.arange(1000)
        data[3] = []
        nested = np.dtype([("n", "i4"), ("v", writer.vlen_dtype("f8")), ("s", writer.string_dtype())])
        struct = file.create_dataset("y", (2,), nested)
        struct[0] = (7, np.array([0.5, 1.5]), "text")
        struct["n", 1] = 8
        file.attrs.create("v", np.array([np.arange(3), np.arange(2)], dtype=object), dtype=writer.vlen_dtype("i4"))
    with reader.File(path, "r") as file:
        assert [list(one) for one in file["x"][...]] == [[1, 2, 3], list(range(1000)), [], []]
        found = file["y"][...]
        assert found["n"].tolist() == [7, 8]
        assert found["v"][0].tolist() == [0.5, 1.5] and len(found["v"][1]) == 0
        assert found["s"][0] == b"text"
        assert [list(one) for one in file.attrs["v"]] == [[0, 1, 2], [0, 1]]


def test_enumerations_and_truth_come_back(path, ways):
    writer, reader = ways
    names = {"RED": 0, "GREEN": 1, "BLUE": 42}
    with writer.File(path, "w") as file:
        file.create_dataset("x", (3,), writer.enum_dtype(names, basetype="i2"))[:] = [0, 42, 1]
        file.create_dataset("y", data=[True, False])
    with reader.File(path, "r") as file:
        assert reader.check_enum_dtype(file["x"].dtype) == names
        assert file["x"][...].tolist() == [0, 42, 1]
        assert file["y"].dtype == bool and file["y"][...].tolist() == [True, False]


def test_references_come_back(path, ways):
    writer, reader = ways
    with writer.File(path, "w") as file:
        target = file.create_dataset("a/b", data=np.arange(24).reshape(4, 6))
        data = file.create_dataset("x", (3,), writer.ref_dtype)
        data[0], data[1] = target.ref, file["a"].ref
        regions = file.create_dataset("y", (1,), writer.regionref_dtype)
        regions[0] = target.regionref[1:3, ::2]
        file.attrs["r"] = target.ref
    with reader.File(path, "r") as file:
        found = file["x"][...]
        assert file[found[0]].name == "/a/b" and file[found[1]].name == "/a"
        assert not found[2]
        assert file[file.attrs["r"]] == file["a/b"]
        region = file["y"][0]
        assert file[region] == file["a/b"]
        np.testing.assert_array_equal(file["a/b"][region], np.arange(24).reshape(4, 6)[1:3, ::2])


def test_datetimes_are_opaque_as_in_h5py(path, ways):
    writer, reader = ways
    data = np.array(["2026-01-02", "1969-12-31"], dtype="<M8[us]")
    with writer.File(path, "w") as file:
        file["x"] = data.astype(writer.opaque_dtype(data.dtype))
    with reader.File(path, "r") as file:
        np.testing.assert_array_equal(file["x"][...], data)
        assert reader.check_opaque_dtype(file["x"].dtype)


def test_empty_comes_back(path, ways):
    writer, reader = ways
    with writer.File(path, "w") as file:
        file["x"] = writer.Empty("<f4")
        file.attrs["x"] = writer.Empty("S10")
    with reader.File(path, "r") as file:
        assert file["x"][()] == reader.Empty("<f4") and file["x"].shape is None
        assert file.attrs["x"] == reader.Empty("S10")


def test_one_value_goes_to_all_cells_of_a_list(ways, path):
    writer, reader = ways
    with writer.File(path, "w") as file:
        data = file.create_dataset("d", (3, 4), "i4")
        data[0, [0, 2]] = 10
        data[[1, 2], 1] = np.int64(5)
        with pytest.raises(TypeError):
            data[[0, 1], 1:3] = [1, 2]
    with reader.File(path) as file:
        assert file["d"][:].tolist() == [[10, 0, 10, 0], [0, 5, 0, 0], [0, 5, 0, 0]]


def test_wide_text_goes_to_strings_of_any_length(ways, path):
    writer, reader = ways
    with writer.File(path, "w") as file:
        data = file.create_dataset("s", (2,), writer.string_dtype())
        data[...] = np.array(["grün", "a"])
        with pytest.raises(TypeError):
            file.create_dataset("f", (2,), writer.string_dtype(length=5))[...] = np.array(["a", "b"])
    with reader.File(path) as file:
        assert file["s"].asstr()[:].tolist() == ["grün", "a"]


@pytest.mark.parametrize("texts", [["basalt", "", "Grüße", "basalt", "\U0001f30b" * 50, "a" * 17], ["tuff"] * 5000 + ["other"]])
def test_strings_go_between_arrays_of_any_kind(path, ways, texts):
    writer, reader = ways
    kinds = {"objects": (np.array(texts, dtype=object), h5py.string_dtype()), "T": (np.array(texts, dtype="T"), None)}
    kinds["bytes"] = (np.array([text.encode() for text in texts], dtype=object), h5py.string_dtype())
    with writer.File(path, "w") as file:
        for name, (given, dtype) in kinds.items():
            file.create_dataset(name, data=given.reshape(-1, 1), dtype=dtype)
    with reader.File(path, "r") as file:
        for name in kinds:
            data = file[name]
            assert data[:, 0].tolist() == [text.encode() for text in texts]
            assert data.asstr()[:, 0].tolist() == texts and data.asstr()[1, 0] == texts[1]
            found = data.astype("T")[...]
            assert found.shape == (len(texts), 1) and found.dtype.kind == "T" and found[:, 0].tolist() == texts
            assert data.astype("T")[2:4, 0].tolist() == texts[2:4]


def test_strings_that_are_no_text(path):
    with pumice.File(path, "w") as file:
        data = file.create_dataset("d", data=[b"good", b"\xff\xfe"], dtype=h5py.string_dtype())
        assert data[:].tolist() == [b"good", b"\xff\xfe"]
        with pytest.raises(UnicodeDecodeError):
            data.asstr()[:]
        assert data.asstr(errors="replace")[1] == "\ufffd\ufffd"
        with pytest.raises(UnicodeEncodeError):
            data.astype("T")[:]
        missing = np.array(["a", None], dtype=np.dtypes.StringDType(na_object=None))
        data[:] = missing
        assert data[:].tolist() == [b"a", b""]
        for given in (np.array(["a\0b", "c"], dtype=object), np.array(["a\0b", "c"], dtype="T")):
            with pytest.raises(ValueError, match="NULL"):
                data[:] = given
        with pytest.raises(TypeError):
            data[:] = np.array(["a", 5], dtype=object)
        ascii = file.create_dataset("a", data=["Grüße"], dtype=h5py.string_dtype())
        with pytest.raises(UnicodeDecodeError):
            ascii.asstr("ascii")[:]
