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
# What measures, and what hangs.
LONG_S = 120
# Where nothing of ours belongs.
ELSEWHERE = ["/etc", "/usr/bin", "/usr/sbin", "/boot", "/opt", "/srv"]
NAMES = ["/tmp", "/run", "/root"]
SYSCTLS = ["/proc/sys/net/core/busy_read", "/proc/sys/net/core/busy_poll",
           "/proc/sys/net/core/high_order_alloc_disable", "/proc/sys/net/core/wmem_max"]
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
    """What stands elsewhere, and root's own files: kind, owner, size, times, content; the names in
    folders where others write too; what the kernel was told."""
    seen = {}
    for top in [*ELSEWHERE, PRECIOUS]:
        for folder, _, files in os.walk(top):
            for path in [folder, *(os.path.join(folder, name) for name in files)]:
                about = os.lstat(path)
                seen[path] = (about.st_mode, about.st_uid, about.st_size, about.st_mtime_ns)
                if path.startswith(PRECIOUS) and path != folder:
                    seen[path] += (hashlib.sha256(open(path, "rb").read()).hexdigest(),)
    for folder in NAMES:
        for name in os.listdir(folder):
            # Without a mount of our own others come and go there.
            if os.path.ismount(folder) or "iolens" in name:
                seen[f"{folder}/{name}"] = True
    for path in SYSCTLS:
        seen[path] = open(path).read() if os.path.exists(path) else None
    for line in open("/proc/vmstat"):
        name, count = line.split()
        if name.startswith("drop_"):
            seen[name] = count
    return seen


def root_does(line, codes, says="", limit_s=LIMIT_S):
    """One command of root's: how it ends, what it says, how long it takes."""
    begin = time.monotonic()
    try:
        done = tool(line, ROOTS, timeout=LONG_S)
        code, said = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        code, said = None, f"it did not end within {LONG_S} s"
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
    (text,) = connection.execute("SELECT run_json FROM run").fetchone()
    header = json.loads(text)
    change(header["plan"])
    connection.execute("UPDATE run SET run_json = ?", (json.dumps(header),))
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
    names = ["plain", "zero", "rounds", "foreign", "path", "damaged", "damaged", "old", "links",
             "view", "fifo", "hard"]
    for name in names:
        done = tool(line + f"{THEIRS}/{name}.db", THEIRS)
        if done.returncode != 0:
            raise SystemExit(done.stderr)


def plant():
    """1: programs and consents in a plan, runs of another machine, plans that no flags give;
    2: an id that is a path; 4: a run of long ago; 5: a damaged row; 8: a view; 9: what lies beside
    a database."""
    os.umask(0o022)

    def consents(plan):
        plan["external"][0]["argv"] = ["/usr/bin/touch", MARK, "{src}", "{dst}"]
        plan.update(file=f"{PRECIOUS}/file", dir=PRECIOUS, evict=True, cache=["cold"])

    def rounds(plan):
        plan["schedule"]["slices"]["discarded_rounds"] = 4294967295

    plan_changed(f"{THEIRS}/programs.db", consents)
    plan_changed(f"{THEIRS}/plain.db", lambda plan: plan.update(allow_sysctl=True))
    plan_changed(f"{THEIRS}/zero.db", lambda plan: plan.update(sizes=[0], threads=[0]))
    plan_changed(f"{THEIRS}/rounds.db", rounds)
    edit(f"{THEIRS}/foreign.db", "UPDATE run SET run_json = json_set(run_json, '$.host.facts', "
         "json('[]'))")
    edit(f"{THEIRS}/path.db", "UPDATE run SET id = ?", f"{PRECIOUS}/page")
    edit(f"{THEIRS}/damaged.db", "UPDATE run_end SET run_end_json = json_set(run_end_json, "
         "'$.stopped_by', ?) WHERE run = 1", "\x1b]0;owned\x07")
    edit(f"{THEIRS}/damaged.db", "UPDATE run SET name = CAST(x'ff' AS TEXT) WHERE run = 1")
    edit(f"{THEIRS}/old.db", "UPDATE run SET started_unix_ns = 1577836800000000000")
    edit(f"{THEIRS}/view.db", "CREATE VIEW endless AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL "
         "SELECT x + 1 FROM n) SELECT x FROM n")
    for name in ["fifo", "hard"]:
        # As SQLite leaves it behind the last who had it open.
        connection = sqlite3.connect(f"{THEIRS}/{name}.db")
        connection.execute("PRAGMA journal_mode = delete")
        connection.close()
    os.mkfifo(f"{THEIRS}/fifo.db-wal", 0o666)


def plant_pages():
    """2: links where pages go."""
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
    wrong = {"path": "its id is not one", "view": "it defines a view",
             "fifo": "not a regular file with one name", "hard": "not a regular file with one name"}
    for name in ["programs", "plain", "zero", "rounds", "foreign", "old", "links", *wrong]:
        database = f"{THEIRS}/{name}.db"
        code, says = (4, wrong[name]) if name in wrong else (0, "")
        lists = name == "path" or name not in wrong
        root_does(f"runs --db {database}", [0 if lists else 4], "" if lists else says)
        root_does(f"show last --db {database}", [code], says)
        root_does(f"export last --format json --db {database}", [code], says)
    damaged = f"{THEIRS}/damaged.db"
    root_does(f"runs --db {damaged}", [0], "damaged")
    root_does(f"show last --db {damaged}", [0])
    root_does(f"show {ids_of('damaged')[0]} --db {damaged}", [4], "damaged or was edited")
    root_does("runs", [0], known)


def ids_of(name):
    listed = tool(f"runs --json --db {THEIRS}/{name}.db", ROOTS).stdout
    return [run["id"] for run in json.loads(listed)]


def measure_stored_plans():
    """What a stored plan asks for takes words of root's own, and a plan of no machine none."""
    for name, code, says in [("programs", 2, "--allow external"), ("plain", 2, "--allow sysctl"),
                             ("zero", 2, "its plan cannot be measured"),
                             ("rounds", 2, "its plan cannot be measured"),
                             ("foreign", 4, "another machine")]:
        database, (run,) = f"{THEIRS}/{name}.db", ids_of(name)
        root_does(f"compare {run} --rerun {TOOL} --db {database}", [code], says)
        root_does(f"confirm {run} --db {database}", [code], says)
        if name != "plain":
            # It changes no sysctl whatever a plan says, and starts no program: see below.
            asks = "--allow file,dir,evict" if name == "programs" else says
            root_does(f"explain {run} --db {database}", [code], asks)


def write_pages():
    nobody_does(plant_pages)
    root_does(f"report last --db {THEIRS}/path.db", [4], "its id is not one")
    root_does(f"report last --db {THEIRS}/links.db", [0], ".html")


def beside_a_lock(known, codes, says):
    """All that root does, while something stands in the place of the machine's lock."""
    read_stored_runs(known)
    measure_stored_plans()
    write_pages()
    for line in [f"rm {known} --yes", "gc --yes", f"import {THEIRS}/old.db --host stranger",
                 "run net --quick --sizes 1KiB --network loopback",
                 f"explain last --db {THEIRS}/plain.db", f"resume last --db {THEIRS}/plain.db"]:
        root_does(line, codes, says)


def apart():
    """Folders in which nobody else writes."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for folder in ["/tmp", "/run"]:
        if not ARENA.startswith(f"{folder}/"):
            subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "none", folder], check=True)
    os.chmod("/run", 0o755)
    os.makedirs(LOCKS, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "none", LOCKS], check=True)


def main():
    apart()
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
    # As a kernel without fs.protected_hardlinks lets a user make it.
    os.link(f"{PRECIOUS}/file", f"{THEIRS}/hard.db-wal")
    own = ("run net --sizes 1KiB --threads 1 --network loopback --baseline send "
           "--methods send,unix_stream,pipe --quick --passes 3 --rounds 2 --progress none")
    begin = time.monotonic()
    done = tool(own, ROOTS)
    run_s = time.monotonic() - begin
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    known = json.loads(tool("runs --json", ROOTS).stdout)[0]["id"]
    before = snapshot()

    # All of it at once, with callers all the time; and one lock file after another.
    caller = as_nobody(call_silently)
    for hold in [hold_fifo, hold_sparse]:
        holder = as_nobody(hold)
        while not os.path.exists(LOCK):
            time.sleep(0.01)
        time.sleep(0.1)
        print(f"-- {hold.__name__}")
        beside_a_lock(known, [4], "it is not a regular file" if hold is hold_fifo else "another run")
        ends(holder)
        os.unlink(LOCK)
    private = f"{LOCKS}/private"
    open(private, "w").write("precious\n")
    os.chmod(private, 0o600)
    os.link(private, LOCK)
    print("-- a hard link")
    beside_a_lock(known, [4], "several names")
    if open(private).read() != "precious\n":
        failed.append("the file behind a hard link has changed")
    os.unlink(LOCK)

    print("-- nothing in the place of the lock")
    read_stored_runs(known)
    measure_stored_plans()
    write_pages()
    (program,) = ids_of("programs")
    root_does(f"import {THEIRS}/programs.db --host stranger", [0])
    root_does(f"compare {program} --rerun {TOOL} --allow external", [2],
              "it was measured on stranger")
    damaged, sound = ids_of("damaged")
    root_does(f"import {THEIRS}/damaged.db --host stranger", [4], sound)
    root_does(f"show {sound}", [0])
    root_does(f"rm {damaged} --yes --db {THEIRS}/damaged.db", [0])
    root_does(f"rm {sound} --yes --db {THEIRS}/damaged.db", [0])
    root_does(f"rm last --yes --db {THEIRS}/path.db", [0])
    nobody_does(plant_pages)
    root_does(f"rm last --yes --db {THEIRS}/links.db", [0])
    for name, says in [("view", "it defines a view"), ("fifo", "not a regular file"),
                       ("hard", "not a regular file")]:
        root_does(f"import {THEIRS}/{name}.db --host stranger", [4], says)
        root_does(f"gc --yes --db {THEIRS}/{name}.db", [4], says)
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
    print("-- a plan that may change sysctls, explained without consent")
    root_does(f"explain {ids_of('plain')[0]} --samples 20 --db {THEIRS}/plain.db", [0, 4],
              limit_s=LONG_S)

    after = snapshot()
    changed = sorted(path for path in before.keys() | after.keys()
                     if before.get(path) != after.get(path))
    print(f"{len(before)} files, names and settings elsewhere, {len(changed)} changed "
          f"{changed[:5]}")
    if os.path.exists(MARK):
        failed.append("a program of a stored plan ran")
    left = [name for name in os.listdir(LOCKS) if name not in ("private",)]
    print(f"left in {LOCKS}: {left}")
    if failed or changed or left:
        raise SystemExit(f"FAILED: {failed} {changed} {left}")
    print("nothing changed but root's own runs")


main()
