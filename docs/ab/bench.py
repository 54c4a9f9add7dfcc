# A benchmark of your own for `iolens ab --loop`. python3 bench.py 100
import os, sys

amount = int(sys.argv[1]) if len(sys.argv) > 1 else 100
fd = os.open("/proc/self/exe", os.O_RDONLY)

def work():  # what you want to measure
    for i in range(amount):
        os.pread(fd, 512, 512 * (i % 8))

print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        work()
    print("ok", flush=True)
