"""Leaks, heap errors and memory limits of each test, found by heapwright.

    plugin    options, markers, and which of the three processes this is
    launch    the outer process: runs pytest again under `heapwright check`, prints findings outside of tests
    tests     the checked process: looks for findings after each test, and fails tests with findings
    peaks     the measured process: the peak of each test with a limit of memory
    findings  what the command reports of a record, and its words in a test's failure
    record    how many findings and leak checks a record has so far
    library   the functions of the preloaded library
    command   the command, and the environment without the preloaded library
    sizes     "24 MB" and back

Imports point downward only.
"""
