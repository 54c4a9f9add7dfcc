"""A second opinion on what the doctor claims, by the kernel's interface alone:
prints, for the user who runs it, what each call said (0, or an errno)."""

import ctypes
import json
import os
import platform
import socket
import struct

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}.get(platform.machine())
IO_URING_SETUP = 425

# perf_event_attr, include/uapi/linux/perf_event.h
TYPE_SOFTWARE, TYPE_TRACEPOINT = 1, 2
CPU_CLOCK, PAGE_FAULTS = 0, 2
DISABLED, EXCLUDE_KERNEL, EXCLUDE_HV, FREQ = 1 << 0, 1 << 5, 1 << 6, 1 << 10
SAMPLE_IP, SAMPLE_CALLCHAIN = 1 << 0, 1 << 5
ATTR_BYTES = 64  # PERF_ATTR_SIZE_VER0


def opened(number, *args):
    fd = libc.syscall(number, *args)
    if fd < 0:
        return ctypes.get_errno()
    os.close(fd)
    return 0


def event(kind, config, flags, frequency=0, sample=0, pid=0, cpu=-1):
    attr = struct.pack(
        "IIQQQQQ", kind, ATTR_BYTES, config, frequency, sample, 0, DISABLED | EXCLUDE_HV | flags
    )
    buffer = ctypes.create_string_buffer(attr.ljust(ATTR_BYTES, b"\0"), ATTR_BYTES)
    return opened(PERF_EVENT_OPEN, buffer, pid, cpu, -1, 0)


def tracepoint():
    try:
        with open("/sys/kernel/tracing/events/sched/sched_switch/id") as file:
            return event(TYPE_TRACEPOINT, int(file.read()), 0)
    except OSError as error:
        return error.errno


def option(level, name, value):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp:
        try:
            tcp.setsockopt(level, name, value)
            return 0
        except OSError as error:
            return error.errno


def symbols():
    try:
        with open("/proc/kallsyms") as file:
            return 0 if any(int(line.split()[0], 16) for line in file) else 1
    except OSError as error:
        return error.errno


def congestion():
    with open("/proc/sys/net/ipv4/tcp_available_congestion_control") as file:
        names = file.read().split()
    return max(option(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode()) for name in names)


sampled = (TYPE_SOFTWARE, CPU_CLOCK, FREQ, 1000, SAMPLE_IP | SAMPLE_CALLCHAIN)
print(json.dumps({
    "kernel events": event(TYPE_SOFTWARE, PAGE_FAULTS, 0),
    "whole CPUs": event(TYPE_SOFTWARE, PAGE_FAULTS, 0, pid=-1, cpu=0),
    "kernel sampling": event(*sampled),
    "kernel symbols": symbols(),
    "tracepoints": tracepoint(),
    "MSG_ZEROCOPY": option(socket.SOL_SOCKET, 60, 1),
    "congestion": congestion(),
    "io_uring": opened(IO_URING_SETUP, 1, ctypes.create_string_buffer(120)),
}))
