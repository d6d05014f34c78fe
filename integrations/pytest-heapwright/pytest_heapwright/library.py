"""The functions of the preloaded library (include/heapwright.h), by ctypes.

The structs are this version's. The library fills as much of a struct as it knows, and returns that size.
"""

import ctypes
import gc


class Amount(ctypes.Structure):
    _fields_ = [("blocks", ctypes.c_uint64), ("bytes", ctypes.c_uint64)]


class LeakCheck(ctypes.Structure):
    _fields_ = [(name, Amount) for name in ("definite", "indirect", "possible", "reachable")]


class Statistics(ctypes.Structure):
    """hw_statistics up to the last field that is read here."""

    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            "pid elapsed_ns detailed rss peak_rss rss_live rss_rounding rss_partial rss_caches rss_remote rss_lazy "
            "rss_metadata rss_pools rss_not_ours live_bytes live_blocks large_bytes large_blocks peak_live_bytes"
        ).split()
    ]


class Library:
    """The preloaded library. RuntimeError if it is not heapwright."""

    def __init__(self):
        self.symbols = ctypes.CDLL(None)
        try:
            for name in ("hw_check_leaks", "hw_get_stats"):
                function = getattr(self.symbols, name)
                function.restype = ctypes.c_size_t
                function.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        except AttributeError:
            raise RuntimeError("heapwright's library is not loaded into this process") from None
        self.symbols.calloc.restype = ctypes.c_void_p
        self.symbols.calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
        self.symbols.free.restype = None
        self.symbols.free.argtypes = [ctypes.c_void_p]

    def lost(self):
        """The number of lost blocks, and their bytes, after a garbage collection, because cycles of Python objects are
        no leaks. None if no check was possible."""
        gc.collect()
        found = LeakCheck()
        for _ in range(2):  # The first check fails if another is running.
            if self.symbols.hw_check_leaks(ctypes.byref(found), ctypes.sizeof(found)):
                return (
                    found.definite.blocks + found.indirect.blocks,
                    found.definite.bytes + found.indirect.bytes,
                )
        return None

    def statistics(self):
        now = Statistics()
        if not self.symbols.hw_get_stats(ctypes.byref(now), ctypes.sizeof(now)) or not now.detailed:
            raise RuntimeError("heapwright's library does not count in this process (option stats_file)")
        return now

    def peak(self):
        """The most bytes that were ever live in this process."""
        return self.statistics().peak_live_bytes
