"""Reading from real servers of S3 on loopback, with 60 ms before each answer: how many requests, how fast, and what is said
when something goes wrong. `scripts/remote-check` prepares and runs it.

  check.py FOLDER [--bench]

The programs are named by the environment: PUMICE, MEASURE (an example of pumice-remote), S3S_FS, MOTO_SERVER."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

import boto3
import h5py
import numpy as np
from proxy import Proxy

import pumice

FOLDER = pathlib.Path(sys.argv[1])
KEYS = {"AWS_ACCESS_KEY_ID": "access", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
DELAY = 0.060
BUCKET = "bucket"


@contextlib.contextmanager
def server(kind):
    """A server of S3 with a bucket, and its port; it ends with the block."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    if kind == "moto":
        command = [os.environ["MOTO_SERVER"], "-H", "127.0.0.1", "-p", str(port)]
    else:
        root = FOLDER / "s3s"
        root.mkdir(exist_ok=True)
        command = [os.environ["S3S_FS"], "--host", "127.0.0.1", "--port", str(port), "--access-key", KEYS["AWS_ACCESS_KEY_ID"]]
        command += ["--secret-key", KEYS["AWS_SECRET_ACCESS_KEY"], str(root)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        client(port).create_bucket(Bucket=BUCKET)
        yield port
    finally:
        process.terminate()
        process.wait()


def client(port):
    address = f"http://127.0.0.1:{port}"
    keys = {"aws_access_key_id": KEYS["AWS_ACCESS_KEY_ID"], "aws_secret_access_key": KEYS["AWS_SECRET_ACCESS_KEY"]}
    return boto3.client("s3", endpoint_url=address, region_name="us-east-1", **keys)


def at(port):
    """Lets everything in this process go to a port."""
    os.environ.update(KEYS, AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}")


def measured(*words):
    done = subprocess.run([os.environ["MEASURE"], *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def files():
    """Files with 300 groups, in three forms, and what repack --cloud makes of them."""
    numbers = np.random.default_rng(1)
    forms = {
        "earliest": {"libver": "earliest"},
        "latest": {"libver": "latest"},
        "paged": {"libver": "latest", "fs_strategy": "page", "fs_page_size": 1 << 20},
    }
    for name, form in forms.items():
        with h5py.File(FOLDER / f"{name}.h5", "w", **form) as file:
            for number in range(300):
                group = file.create_group(f"group{number:03}")
                group.attrs["unit"] = np.bytes_("mV")
                for dataset in ("a", "d"):
                    group.create_dataset(dataset, data=numbers.integers(0, 1000, (100, 64), "i4"), chunks=(50, 64))
        subprocess.run([os.environ["PUMICE"], "repack", "--cloud", f"{name}.h5", f"{name}-cloud.h5"], cwd=FOLDER, check=True)
    return [*forms, *(f"{name}-cloud" for name in forms)]


def error_of(action):
    try:
        action()
    except Exception as error:  # noqa: BLE001
        return str(error)
    raise AssertionError("it should have failed")


def counts(kind, proxy, names):
    """Requests to read a cell and to walk."""
    for name in names:
        address = f"s3://{BUCKET}/{name}.h5"
        proxy.reset()
        cell = measured("cell", address, "group150/d")
        asked = proxy.reset()
        walk = measured("walk", address)
        walked = proxy.reset()
        print(f"{kind} {name}: cell {len(asked)} requests {cell['seconds']:.2f} s, walk {len(walked)} requests {walk['seconds']:.2f} s")
        assert cell["requests"] == len(asked) and walk["requests"] == len(walked), "statistics"
        most = 2 if name.endswith("-cloud") else 4
        assert len(asked) <= most, asked
        assert len(walked) <= 6 and walk["count"] == 901, walked
        assert not any(method == "HEAD" for method, _ in asked + walked)


def faults(kind, proxy, port):
    """What goes wrong is passed over, or said."""
    address = f"s3://{BUCKET}/latest.h5"
    with h5py.File(FOLDER / "latest.h5") as file:
        expected = file["group299/d"][:]
    for fault in (429, 500, 503, "cut"):
        proxy.reset(lambda number, fault=fault: fault if number % 2 == 0 else None)
        with pumice.File(address) as file:
            assert (file["group299/d"][:] == expected).all(), fault
    proxy.reset()
    with pumice.File(address) as file:
        # A child has no threads to fetch with: it gets an error, and waits for nothing.
        if os.fork() == 0:
            error_of(lambda: file["group299/d"][:])
            os._exit(0)
        assert os.wait()[1] == 0
        assert (file["group299/d"][:] == expected).all()
    signed = client(port).generate_presigned_url("get_object", Params={"Bucket": BUCKET, "Key": "latest.h5"})
    with pumice.File(signed) as file:
        assert (file["group299/d"][:] == expected).all(), "a signed address"
    missing = client(port).generate_presigned_url("get_object", Params={"Bucket": BUCKET, "Key": "none.h5"})
    error = error_of(lambda: pumice.File(missing))
    assert "404" in error and "ignature=" not in error, error
    if kind == "moto":
        # The range is part of what is signed, and moto looks at no signature.
        proxy.reset(lambda _: "whole")
        error = error_of(lambda: pumice.File(address))
        assert "sends the whole object" in error, error
    proxy.reset()
    error = error_of(lambda: pumice.File(f"s3://{BUCKET}/missing.h5"))
    assert "no such object (404" in error, error
    # Open twice: one reads before the object is replaced, the other fails after it.
    file = pumice.File(f"s3://{BUCKET}/paged.h5")
    client(port).upload_file(str(FOLDER / "latest.h5"), BUCKET, "paged.h5")
    error = error_of(lambda: file["group299/d"][:])
    assert "was replaced or changed" in error, error
    file.close()
    client(port).upload_file(str(FOLDER / "paged.h5"), BUCKET, "paged.h5")
    os.environ["AWS_SECRET_ACCESS_KEY"] = "wrong"
    if kind == "s3s-fs":
        error = error_of(lambda: pumice.File(address))
        assert "access is refused (403" in error and "AWS_SECRET_ACCESS_KEY" in error, error
    os.environ.update(KEYS)
    proxy.reset(lambda number: 503 if number else None)
    began = time.monotonic()
    with pumice.File(address) as file:
        error = error_of(lambda: file["group299/d"][:])
    assert "the server answers 503; gave up after 9 attempts" in error, error
    print(f"{kind}: faults as expected; a server that answers 503 alone is given up after {time.monotonic() - began:.0f} s")
    proxy.reset()


def writing(kind, port):
    """A file is sent in parts."""
    for name in ("paged", "earliest"):
        address = f"s3://{BUCKET}/sent.h5"
        command = [os.environ["PUMICE"], "repack", "--cloud", "--force", f"{name}.h5", address]
        subprocess.run(command, cwd=FOLDER, check=True)
        client(port).download_file(BUCKET, "sent.h5", str(FOLDER / "sent.h5"))
        assert (FOLDER / "sent.h5").read_bytes() == (FOLDER / f"{name}-cloud.h5").read_bytes(), name
    refused = subprocess.run([*command[:3], *command[4:]], cwd=FOLDER, capture_output=True, text=True, check=False)
    assert refused.returncode == 1 and "the object exists" in refused.stderr, refused.stderr
    print(f"{kind}: files are written in parts, and not replaced without --force")


def wide(port, form, version):
    """A file of 300 MiB with 300 groups, whose metadata is everywhere, as it came and for the cloud."""
    path = FOLDER / f"wide-{form}.h5"
    with h5py.File(path, "w", libver=version) as file:
        values = np.random.default_rng(3).integers(0, 1 << 30, (4096, 64), "i4")
        for number in range(300):
            file.create_dataset(f"group{number:03}/d", data=values, chunks=(256, 64))
    subprocess.run([os.environ["PUMICE"], "repack", "--cloud", path.name, f"wide-{form}-cloud.h5"], cwd=FOLDER, check=True)
    for name in (f"wide-{form}", f"wide-{form}-cloud"):
        client(port).upload_file(str(FOLDER / f"{name}.h5"), BUCKET, f"{name}.h5")
        (FOLDER / f"{name}.h5").unlink()
        yield name


def through_s3fs(port, address):
    """The seconds that h5py takes through s3fs to open a file and read a cell."""
    import fsspec

    began = time.monotonic()
    keys = {"key": KEYS["AWS_ACCESS_KEY_ID"], "secret": KEYS["AWS_SECRET_ACCESS_KEY"]}
    place = {"endpoint_url": f"http://127.0.0.1:{port}", "skip_instance_cache": True}
    with fsspec.filesystem("s3", **place, **keys).open(address) as stream, h5py.File(stream) as file:
        file["group150/d"][-1, -1]
    return time.monotonic() - began


def peer(port, proxy):
    """h5py through s3fs, beside us, for opening a file and reading a cell."""
    through_s3fs(proxy.port, f"s3://{BUCKET}/latest.h5")  # so that everything is imported
    for form, version in (("earliest", "earliest"), ("latest", "latest")):
        for name in wide(port, form, version):
            address = f"s3://{BUCKET}/{name}.h5"
            ours, theirs = [], []
            for _ in range(3):
                proxy.reset()
                ours.append(measured("cell", address, "group150/d")["seconds"])
                own = len(proxy.reset())
                theirs.append(through_s3fs(proxy.port, address))
                asked = len(proxy.reset())
            ours, theirs = min(ours), min(theirs)
            told = f"{ours:.3f} s with {own} requests, h5py with s3fs {theirs:.3f} s with {asked}"
            print(f"cell of {name}: {told}: {theirs / ours:.1f} x")


def large(port, proxy):
    """Reading a dataset of 1 GiB, beside a plain parallel download."""
    path = FOLDER / "large.h5"
    with h5py.File(path, "w", libver="latest") as file:
        dataset = file.create_dataset("d", (32768, 8192), "f4", chunks=(64, 4096))
        numbers = np.random.default_rng(2).random((1024, 8192), "f4")
        for row in range(0, 32768, 1024):
            dataset[row : row + 1024] = numbers
        file.create_dataset("gzip", (4096, 8192), "f4", data=np.tile(numbers.round(2), (4, 1)), chunks=(64, 4096), compression=1)
    client(port).upload_file(str(path), BUCKET, "large.h5")
    path.unlink()
    for name, target in (("at once", port), ("with 60 ms", proxy.port)):
        at(target)
        rounds = [(measured("read", f"s3://{BUCKET}/large.h5", "d")["seconds"], measured("download", f"s3://{BUCKET}/large.h5")["seconds"]) for _ in range(3)]
        ours, plain = (min(seconds) for seconds in zip(*rounds))
        print(f"1 GiB {name}: {ours:.2f} s, a plain parallel download {plain:.2f} s: {ours / plain:.2f} x")


def main():
    names = files()
    for kind in ("moto", "s3s-fs"):
        with server(kind) as port:
            proxy = Proxy(port, DELAY)
            at(proxy.port)
            for name in names:
                client(port).upload_file(str(FOLDER / f"{name}.h5"), BUCKET, f"{name}.h5")
            counts(kind, proxy, names)
            faults(kind, proxy, port)
            writing(kind, port)
            if "--bench" in sys.argv and kind == "s3s-fs":
                peer(port, proxy)
                large(port, proxy)
            proxy.close()


if __name__ == "__main__":
    main()
