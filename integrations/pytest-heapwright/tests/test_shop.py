"""Right and wrong tests: the wrong ones must fail under the plugin, by name (ci/integrations.sh pytest)."""

import os

import pytest
import shop

mark = pytest.mark


def test_right_block(): shop.give_back(1234)
def test_right_object(): shop.count_right()
def test_right_cycle():
    ring = []
    ring.append(ring)
@mark.limit_leaks("2 KB")
def test_right_little_lost(): shop.forget(1234)
@mark.limit_memory("24 MB")
def test_right_peak(): shop.give_back(20 << 20)
# After this test the process's own peak is above all later limits. Later peaks must be measured all
# the same.
@mark.limit_memory("64 MB")
def test_right_high_peak(): bytearray(50 << 20)
@mark.limit_memory("200 KB")
def test_right_low_peak(): bytearray(100 << 10)
@mark.xfail(strict=True)
def test_right_as_expected(): shop.forget(1234)

@mark.parametrize("times", [1, 2])
def test_wrong_block(times):
    for _ in range(times):
        shop.forget(1234)
def test_wrong_object(): shop.count_wrong()
@mark.limit_leaks("1 KB")
def test_wrong_much_lost(): shop.forget(1234)
@mark.limit_memory("24 MB")
def test_wrong_peak(): shop.give_back(30 << 20)
@mark.limit_memory("200 KB")
def test_wrong_low_peak(): bytearray(300 << 10)
@mark.no_heap_errors
def test_wrong_free(): shop.free_twice()
def test_wrong_write(): shop.write_beyond()
@pytest.fixture
def forgets():
    yield
    shop.forget(1234)
def test_wrong_fixture(forgets): pass
def test_wrong_child():
    child = os.fork()
    if child == 0:
        shop.free_twice()
        os._exit(0)
    os.waitpid(child, 0)
