"""How long the first touch of fresh memory takes, in small and in large pages (Linux).

    python bench/pages.py
"""

import mmap
import time

SIZE = 256 << 20

for advice in ("MADV_NOHUGEPAGE", "MADV_HUGEPAGE") * 3:
    time.sleep(4)  # long enough for a virtual machine to give free pages back
    memory = mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(getattr(mmap, advice))
    start = time.perf_counter()
    memory[:: mmap.PAGESIZE] = bytes(SIZE // mmap.PAGESIZE)
    print(f"{advice}: {(time.perf_counter() - start) * 1000:.0f} ms")
    memory.close()
