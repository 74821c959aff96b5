"""Drivers: how the bytes of a file are reached."""

MEM_DEFAULT, MEM_SUPER, MEM_BTREE, MEM_DRAW, MEM_GHEAP, MEM_LHEAP, MEM_OHDR, MEM_NTYPES = 0, 1, 2, 3, 4, 5, 6, 7
SEC2, CORE, FAMILY, STDIO, fileobj_driver = 1, 2, 3, 4, 5
LOG_LOC_READ = 2
