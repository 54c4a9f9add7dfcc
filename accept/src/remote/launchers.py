#!/usr/bin/env python3
"""Stands for srun(1) or kubectl(1), by the name it is called by, between two namespaces.

Takes the flags of theirs that give a program's input and output to somebody elsewhere, refuses
others, and starts the program in the network namespace of the process FAR_PID. As with these two,
that has pipes of its own, which are copied from and to ours, and no terminal.
"""

import argparse
import os
import subprocess
import sys
import threading

NODE, POD = "node2", "iolens-far"


def srun(words):
    """The program of a step on one task of one node: https://slurm.schedmd.com/srun.html"""
    parser = argparse.ArgumentParser("srun", allow_abbrev=False)
    parser.add_argument("--overlap", action="store_true", required=True)
    parser.add_argument("-N", "--nodes", choices=["1"], required=True)
    parser.add_argument("-n", "--ntasks", choices=["1"], required=True)
    parser.add_argument("-w", "--nodelist", required=True)
    parser.add_argument("--cpu-bind")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    asked = parser.parse_args(words)
    if asked.nodelist != NODE:
        sys.exit(f"srun: error: Unable to create step: Invalid node name ({asked.nodelist})")
    return asked.program, True


def kubectl(words):
    """kubectl exec: https://kubernetes.io/docs/reference/kubectl/generated/kubectl_exec/"""
    if words[:1] != ["exec"] or "--" not in words:
        sys.exit("error: you must specify a command behind `kubectl exec POD --`")
    split = words.index("--")
    parser = argparse.ArgumentParser("kubectl exec", allow_abbrev=False)
    parser.add_argument("-i", "--stdin", action="store_true")
    parser.add_argument("pod")
    asked = parser.parse_args(words[1:split])
    if asked.pod != POD:
        sys.exit(f'Error from server (NotFound): pods "{asked.pod}" not found')
    return words[split + 1 :], asked.stdin


def copy(source, target):
    """Copies bytes as they come until there are no more, then closes the target."""
    try:
        while piece := os.read(source, 1 << 16):
            while piece:
                piece = piece[os.write(target, piece) :]
    except OSError:
        pass
    os.close(target)


def main():
    name = os.path.basename(sys.argv[0])
    program, has_input = {"srun": srun, "kubectl": kubectl}[name](sys.argv[1:])
    if not program:
        sys.exit(f"{name}: no program is named")
    there = ["nsenter", "-t", os.environ["FAR_PID"], "-n", "--", *program]
    task = subprocess.Popen(there, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    inward = (0, os.dup(task.stdin.fileno()))
    task.stdin.close()
    if has_input:
        threading.Thread(target=copy, args=inward, daemon=True).start()
    else:
        os.close(inward[1])
    outward = threading.Thread(target=copy, args=(task.stdout.fileno(), os.dup(1)))
    outward.start()
    outward.join()
    sys.exit(task.wait())


main()
