"""An independent reading of /proc beside that of a server: which two processes have
used the most CPU time. Processes with hostile names burn it meanwhile, and others
begin and end all the time. Started with the tool, models after it; prints one JSON
object. In a pid namespace with a /proc of its own the hostile ones come first."""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time

PR_SET_NAME, PR_SET_PDEATHSIG = 15, 1
libc = ctypes.CDLL(None, use_errno=True)

# Burning for so long, s, before anybody is asked; the first two the longest.
HOSTILE = [
    (b"a b) R 1 (c", 1.6),
    (b"x\ny;z\\x20 (", 1.1),
    (b"))) 1 1 1 9999", 0.3),
    (b"((((((", 0.2),
    (b"; 1 init 9 9", 0.2),
    (b"\t \x01\xff\xc3", 0.2),
]


def child(work):
    pid = os.fork()
    if pid == 0:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        try:
            work()
        finally:
            os._exit(0)
    return pid


def burn(name, seconds):
    """CPU time under a name, and after a pause more of it until it is stopped."""
    libc.prctl(PR_SET_NAME, name, 0, 0, 0)
    os.nice(5)
    while time.process_time() < seconds:
        pass
    os.kill(os.getpid(), signal.SIGSTOP)
    while True:
        pass


def come_and_go():
    while True:
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)


def stat(pid):
    """(pid, name, user ticks, kernel ticks), or None of one that has gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    name = text[text.index(b"(") + 1 : text.rindex(b")")]
    rest = text[text.rindex(b")") + 2 :].split()
    return int(pid), name, int(rest[11]), int(rest[12])


def first_two():
    every = (stat(pid) for pid in os.listdir("/proc") if pid.isdigit())
    found = [process for process in every if process is not None]
    return sorted(found, key=lambda process: (-(process[2] + process[3]), process[0]))[:2]


def unescaped(name):
    out, at = bytearray(), 0
    raw = name.encode("ascii")
    while at < len(raw):
        if raw[at : at + 2] == b"\\x":
            out.append(int(raw[at + 2 : at + 4], 16))
            at += 4
        else:
            out.append(raw[at])
            at += 1
    return bytes(out)


def ticks(part):
    """`user 1.50 s`, in clock ticks."""
    _, seconds, _ = part.split(" ")
    return round(float(seconds) * os.sysconf("SC_CLK_TCK"))


def parsed(reply):
    processes = []
    for process in reply.split("; "):
        who, spent = process.split(": ")
        _, pid, name = who.split(" ")
        user, kernel, total = (ticks(part) for part in spent.split(", "))
        if total != user + kernel:
            raise SystemExit(f"total is not the sum: {reply!r}")
        processes.append((int(pid), unescaped(name), user, kernel))
    return processes


class Server:
    def __init__(self, tool, model):
        line = [tool, "serve", model, "--service", "top2", "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(
            line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self.port = int(self.process.stderr.readline().rsplit(":", 1)[1])

    def ask(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as stream:
            stream.sendall(b"1\n")
            reply = b""
            while not reply.endswith(b"\n"):
                more = stream.recv(65536)
                if not more:
                    raise SystemExit(f"cut off: {reply!r}")
                reply += more
        return reply.decode("ascii")[2:-1]

    def stop(self):
        self.process.terminate()
        return self.process.wait()


def agrees(before, reply, after):
    """Whether a reply lies between two readings; None where they differ in who is first."""
    if [process[:2] for process in before] != [process[:2] for process in after]:
        return None
    if [process[:2] for process in before] != [process[:2] for process in reply]:
        return False
    return all(
        b[2] <= r[2] <= a[2] and b[3] <= r[3] <= a[3] for b, r, a in zip(before, reply, after)
    )


def compare(server, times):
    same = changed = exact = 0
    wrong = []
    while same + len(wrong) < times and changed < 20 * times:
        before, text, after = first_two(), server.ask(), first_two()
        verdict = agrees(before, parsed(text), after)
        if verdict is None:
            changed += 1
        elif verdict:
            same += 1
            exact += before == after
        else:
            wrong.append([repr(before), text, repr(after)])
    return {"same": same, "exact": exact, "changed": changed, "wrong": wrong[:3]}


def stopped(pids):
    for pid in pids:
        os.waitpid(pid, os.WUNTRACED)


def main():
    tool, models = sys.argv[1], sys.argv[2:]
    out = {"resting": {}, "burning": {}, "ended": {}}
    burners = [child(lambda n=name, s=seconds: burn(n, s)) for name, seconds in HOSTILE]
    stopped(burners)
    out["first"] = [repr(process[1]) for process in first_two()]
    out["hostile_first"] = [process[0] for process in first_two()] == burners[:2]
    for phase in ["resting", "burning"]:
        if phase == "burning":
            for pid in burners[:2]:
                os.kill(pid, signal.SIGCONT)
            changing = child(come_and_go)
        for model in models:
            server = Server(tool, model)
            out[phase][model] = compare(server, 20)
            out["ended"][model] = server.stop()
    for pid in burners + [changing]:
        os.kill(pid, signal.SIGKILL)
    print(json.dumps(out))


main()
