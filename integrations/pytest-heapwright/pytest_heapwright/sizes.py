"""Sizes as people write them."""

import re

# As memory is sold and as most tools print it: powers of 1024 under both names.
UNITS = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse(text):
    """Bytes of "24 MB", "1.5 KiB" or 100. ValueError says what is wrong."""
    if isinstance(text, (int, float)) and not isinstance(text, bool) and text >= 0:
        return int(text)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", str(text), re.IGNORECASE)
    if not match:
        raise ValueError(f"{text!r} is no size; write 100, '1 KB' or '24 MB'")
    return int(float(match[1]) * UNITS[match[2].upper()])


def show(count):
    """Bytes in words."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.1f} {unit}" if unit != "B" else f"{count} B"
        count /= 1024
    return f"{count:.1f} GiB"
