"""Answers of a redis server, in turns with and without a profile of it: `redis.py PORT PID COMMAND ROUNDS`.

Prints a line for each round: microseconds at the 50th and 99th percentile, without and with.
"""

import socket
import subprocess
import sys
import time

port, pid, command, rounds = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
SECONDS = 2.0


def answers(seconds):
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    times, number, value, end = [], 0, b"x" * 200, time.monotonic() + seconds
    while time.monotonic() < end:
        key = b"key%07d" % (number % 100000)
        number += 1
        began = time.perf_counter()
        connection.sendall(b"*3\r\n$3\r\nSET\r\n$10\r\n%s\r\n$200\r\n%s\r\n" % (key, value))
        connection.recv(100)
        times.append(time.perf_counter() - began)
    connection.close()
    times.sort()
    return times[len(times) // 2] * 1e6, times[len(times) * 99 // 100] * 1e6


for _ in range(rounds):
    without = answers(SECONDS)
    profile = subprocess.Popen(
        [command, "profile", pid, "--seconds", str(SECONDS + 1), "-o", "/dev/null"], stderr=subprocess.DEVNULL
    )
    time.sleep(0.3)
    sampled = answers(SECONDS)
    profile.wait()
    print("%.1f %.1f %.1f %.1f" % (*without, *sampled))
