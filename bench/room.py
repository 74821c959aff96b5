"""How long it takes to write a new file in pieces, whose blocks are found as bytes come or all at once (Linux).

    python bench/room.py [FOLDER]
"""

import os
import statistics
import sys
import tempfile
import time

SIZE, PIECE, ROUNDS = 20_600_000, 1_145_000, 31

with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
    path, data = os.path.join(folder, "room"), bytes(range(256)) * (PIECE // 256 + 1)
    times = {"as bytes come": [], "all at once": []}
    for _ in range(ROUNDS):
        for name, seconds in times.items():
            start = time.perf_counter()
            file = os.open(path, os.O_CREAT | os.O_RDWR)
            if name == "all at once":
                os.posix_fallocate(file, 0, SIZE)
            for offset in range(0, SIZE, PIECE):
                os.pwrite(file, memoryview(data)[: min(PIECE, SIZE - offset)], offset)
            os.close(file)
            seconds.append(time.perf_counter() - start)
            os.unlink(path)
    for name, seconds in times.items():
        print(f"{name}: {statistics.median(seconds) * 1e3:.2f} ms")
