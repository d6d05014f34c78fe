import atexit, os
import shop


def test_right():
    if "AT_EXIT" in os.environ:
        atexit.register(shop.free_twice)
