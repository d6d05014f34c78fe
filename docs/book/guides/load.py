"""load.py N: sets the values of a hundred names, N times in all. load.py end: ends the server."""
import socket, sys, time

for _ in range(500):  # Until the server is there.
    try:
        server = socket.socket(socket.AF_UNIX)
        server.connect("keep.socket")
        break
    except OSError:
        time.sleep(0.02)
else:
    sys.exit("load.py: nobody answers at keep.socket")
lines = server.makefile("rw")
if sys.argv[1] == "end":
    lines.write("end\n")
    lines.flush()
    sys.exit()
for number in range(int(sys.argv[1])):
    lines.write(f"set name{number % 100} {'x' * 3000}\n")
    lines.flush()
    if lines.readline() != "ok\n":
        sys.exit("load.py: no answer")
print("the load is done")
