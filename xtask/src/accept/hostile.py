"""An ordinary user plants what he can; root then uses the tool as ever. Started as root in mount and
network namespaces of its own, with the tool and an empty folder. Prints a line for each command of
root's, and ends with 1 if one took too long, if it did not say what it should, or if anything
changed that is not the tool's own."""

import ctypes
import fcntl
import hashlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time

TOOL, ARENA = sys.argv[1], sys.argv[2]
NOBODY = 65534
LIMIT_S = 1.0
# Where nothing of ours belongs.
ELSEWHERE = ["/etc", "/usr/bin", "/usr/sbin", "/boot", "/opt", "/srv"]
SYSCTLS = ["/proc/sys/net/core/busy_read", "/proc/sys/net/core/busy_poll",
           "/proc/sys/vm/drop_caches", "/proc/sys/net/core/wmem_max"]
THEIRS, ROOTS = f"{ARENA}/theirs", f"{ARENA}/roots"
PRECIOUS = f"{ROOTS}/precious"
MARK = f"{ROOTS}/ran"
LOCKS = "/run/lock"
LOCK = f"{LOCKS}/iolens.lock"
failed = []


def as_nobody(work):
    """Does something as an ordinary user, in a process that ends with it."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            work()
            status = 0
        finally:
            os._exit(status)
    return child


def nobody_does(work):
    _, status = os.waitpid(as_nobody(work), 0)
    if status != 0:
        raise SystemExit(f"the stranger could not do {work.__name__}: status {status}")


def tool(line, home, **more):
    env = dict(os.environ, XDG_DATA_HOME=home, TMPDIR=f"{home}/tmp", NO_COLOR="1")
    os.makedirs(f"{home}/tmp", exist_ok=True)
    words = [TOOL, *line.split()]
    return subprocess.run(words, env=env, cwd=home, capture_output=True, text=True, **more)


def snapshot():
    """What stands elsewhere, and root's own files: kind, owner, size, times, content."""
    seen = {}
    for top in [*ELSEWHERE, PRECIOUS]:
        for folder, _, files in os.walk(top):
            for path in [folder, *(os.path.join(folder, name) for name in files)]:
                about = os.lstat(path)
                seen[path] = (about.st_mode, about.st_uid, about.st_size, about.st_mtime_ns)
                if path.startswith(PRECIOUS) and path != folder:
                    seen[path] += (hashlib.sha256(open(path, "rb").read()).hexdigest(),)
    for path in SYSCTLS:
        seen[path] = open(path).read() if os.path.exists(path) and "drop" not in path else None
    return seen


def root_does(line, codes, says="", limit_s=LIMIT_S):
    """One command of root's: how it ends, what it says, how long it takes."""
    begin = time.monotonic()
    try:
        done = tool(line, ROOTS, timeout=60)
        code, said = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        code, said = None, "it did not end within 60 s"
    took = time.monotonic() - begin
    shown = line.replace(ARENA, "").replace(TOOL, "iolens")
    wrong = []
    if code not in codes:
        wrong.append(f"ended with {code}, not {codes}")
    if says not in said:
        wrong.append(f"did not say `{says}`")
    if "\x1b" in said or "panicked" in said:
        wrong.append("escapes or a panic")
    if took > limit_s:
        wrong.append(f"took more than {limit_s:.1f} s")
    print(f"{'FAIL' if wrong else 'ok'} {shown}: {code}, {took:.2f} s {'; '.join(wrong)}")
    if wrong:
        failed.append(shown)
        print("    " + " / ".join(said.split("\n")[:6]), flush=True)
    return said


def edit(database, statement, *values):
    connection = sqlite3.connect(database)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


def plan_changed(database, change):
    connection = sqlite3.connect(database)
    (text,) = connection.execute("SELECT plan_json FROM run").fetchone()
    plan = json.loads(text)
    change(plan)
    connection.execute("UPDATE run SET plan_json = ?", (json.dumps(plan),))
    connection.commit()
    connection.close()


def measure_copies():
    os.umask(0o022)
    line = ("run copy --file-sizes 64KiB --block-size 64KiB --engines read_write,x --baseline read_write "
            "--quick --passes 2 --rounds 2 --progress none --db " + THEIRS + "/programs.db")
    words = [TOOL, *line.split(), "--external", "x=cp {src} {dst}"]
    env = dict(os.environ, XDG_DATA_HOME=THEIRS, TMPDIR=THEIRS)
    subprocess.run(words, env=env, cwd=THEIRS, check=True, capture_output=True)


def measure_calls():
    os.umask(0o022)
    line = ("run net --sizes 1KiB --threads 1 --network loopback --methods send,write "
            "--baseline send --quick --passes 2 --rounds 2 --progress none --db ")
    for name in ["plain", "path", "damaged", "old", "links"]:
        done = tool(line + f"{THEIRS}/{name}.db", THEIRS)
        if done.returncode != 0:
            raise SystemExit(done.stderr)


def plant():
    """1: programs and consents in a plan; 2: an id that is a path, links for pages; 4: a run of
    long ago; 5: a damaged row."""
    os.umask(0o022)

    def consents(plan):
        plan["external"][0]["argv"] = ["/usr/bin/touch", MARK, "{src}", "{dst}"]
        plan.update(file=f"{PRECIOUS}/file", dir=PRECIOUS, evict=True, cache=["cold"])

    plan_changed(f"{THEIRS}/programs.db", consents)
    plan_changed(f"{THEIRS}/plain.db", lambda plan: plan.update(
        allow_sysctl=True, busy_poll_us=[50]))
    edit(f"{THEIRS}/path.db", "UPDATE run SET id = ?", f"{PRECIOUS}/page")
    edit(f"{THEIRS}/damaged.db", "UPDATE run_end SET stopped_by = ?", "\x1b]0;owned\x07")
    edit(f"{THEIRS}/old.db", "UPDATE run SET started_unix_ns = 1577836800000000000")
    reports = f"{THEIRS}/reports"
    for name in os.listdir(reports):
        os.unlink(f"{reports}/{name}")
        os.symlink(f"{PRECIOUS}/file", f"{reports}/{name}")


def hold_fifo():
    os.umask(0)
    os.mkfifo(LOCK, 0o666)
    held = os.open(LOCK, os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    signal.pause()


def hold_sparse():
    os.umask(0)
    held = os.open(LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    os.ftruncate(held, 3 << 30)
    fcntl.flock(held, fcntl.LOCK_EX)
    signal.pause()


def call_silently():
    """6: connects to every socket that has a name of the kernel's choosing, and says nothing."""
    kept = []
    while True:
        for line in open("/proc/net/unix"):
            name = line.rstrip("\n").rpartition("@")[2] if "@" in line else ""
            if len(name) == 5:
                caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                caller.setblocking(False)
                try:
                    caller.connect("\0" + name)
                    kept.append(caller)
                except OSError:
                    caller.close()


def ends(child):
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def read_stored_runs(known):
    """What root does with databases, which asks nobody's lock."""
    for name in ["programs", "plain", "path", "damaged", "old", "links"]:
        odd = name in ("path", "damaged")
        database = f"{THEIRS}/{name}.db"
        root_does(f"runs --db {database}", [0])
        root_does(f"show last --db {database}", [2, 4] if odd else [0])
        root_does(f"export last --format json --db {database}", [2, 4] if odd else [0])
    root_does("runs", [0], known)


def main():
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "none", LOCKS], check=True)
    os.chmod(ARENA, 0o755)
    for folder, owner, mode in [(THEIRS, NOBODY, 0o755), (ROOTS, 0, 0o700), (PRECIOUS, 0, 0o700)]:
        os.mkdir(folder)
        os.chown(folder, owner, owner)
        os.chmod(folder, mode)
    for name in ["file", "page.html"]:
        open(f"{PRECIOUS}/{name}", "w").write("precious\n")
    nobody_does(measure_copies)
    nobody_does(measure_calls)
    nobody_does(plant)
    own = ("run net --sizes 1KiB --threads 1 --network loopback --baseline send "
           "--methods send,unix_stream,pipe --quick --passes 3 --rounds 2 --progress none")
    begin = time.monotonic()
    done = tool(own, ROOTS)
    run_s = time.monotonic() - begin
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    known = json.loads(tool("runs --json", ROOTS).stdout)[0]["id"]
    before = snapshot()

    # Everything at once: callers all the time, and one lock file after another.
    caller = as_nobody(call_silently)
    for hold in [hold_fifo, hold_sparse]:
        holder = as_nobody(hold)
        while not os.path.exists(LOCK):
            time.sleep(0.01)
        time.sleep(0.1)
        print(f"-- {hold.__name__}")
        read_stored_runs(known)
        root_does(f"rm {known} --yes", [4])
        root_does("run net --quick --sizes 1KiB --network loopback", [4])
        ends(holder)
        os.unlink(LOCK)
    # As a kernel without fs.protected_hardlinks lets a user make it.
    private = f"{LOCKS}/private"
    open(private, "w").write("precious\n")
    os.chmod(private, 0o600)
    os.link(private, LOCK)
    print("-- a hard link")
    read_stored_runs(known)
    root_does(f"rm {known} --yes", [4], "several names")
    if open(private).read() != "precious\n":
        failed.append("the file behind a hard link has changed")
    os.unlink(LOCK)

    print("-- stored plans")
    ids = {}
    for name in ["programs", "plain"]:
        database = f"{THEIRS}/{name}.db"
        ids[name] = json.loads(tool(f"runs --json --db {database}", ROOTS).stdout)[0]["id"]
        for line in [f"compare {ids[name]} --rerun {TOOL}", f"confirm {ids[name]}",
                     f"resume {ids[name]}"]:
            root_does(f"{line} --db {database}", [2, 4], "--allow")
    # It changes no sysctl whatever a plan says, so that the other one is measured.
    root_does(f"explain {ids['programs']} --db {THEIRS}/programs.db", [2, 4], "--allow")
    root_does(f"import {THEIRS}/programs.db --host stranger", [0])
    root_does(f"compare {ids['programs']} --rerun {TOOL} --allow external", [2, 4])
    print("-- pages")
    root_does(f"report last --db {THEIRS}/path.db", [4])
    root_does(f"rm last --yes --db {THEIRS}/path.db", [0, 4])
    root_does(f"report last --db {THEIRS}/links.db", [0, 4])
    root_does(f"rm last --yes --db {THEIRS}/links.db", [0])
    print("-- upkeep")
    root_does(f"import {THEIRS}/damaged.db --host stranger", [0, 4])
    root_does(f"import {THEIRS}/old.db --host stranger", [0])
    said = root_does("gc --keep 1 --dry-run", [0])
    if known in said:
        failed.append("gc would remove root's own run")
    print("-- a run beside silent callers")
    root_does(own, [0], limit_s=2 * run_s + LIMIT_S)
    rows = json.loads(tool("export last --format json --rows cells", ROOTS).stdout)["cells"]
    states = sorted({row["status"] for row in rows})
    print(f"{len(rows)} arms: {', '.join(states)}")
    if states != ["ok"]:
        failed.append("arms beside silent callers")
    ends(caller)

    after = snapshot()
    changed = sorted(path for path in before.keys() | after.keys()
                     if before.get(path) != after.get(path))
    print(f"{len(before)} files and settings elsewhere, {len(changed)} changed {changed[:5]}")
    if os.path.exists(MARK):
        failed.append("a program of a stored plan ran")
    left = [name for name in os.listdir(LOCKS) if name not in ("private",)]
    print(f"left in {LOCKS}: {left}")
    if failed or changed or left:
        raise SystemExit(f"FAILED: {failed} {changed} {left}")
    print("nothing changed but root's own runs")


main()
