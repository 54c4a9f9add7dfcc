#!/usr/bin/env python3
"""Recomputes stored runs from their slices and holds the result against what iolens prints.

    recompute.py [--iolens PROGRAM] [--perturb] RUN...

Reads `iolens export RUN --rows slices` and derives from it, by METHOD.md alone (method.py),
what `iolens export --rows arms`, `--rows cells` and `iolens show --json` print. A number that
is off by more than a millionth of it, or a word that is another, is a disagreement, and the
exit code 1. With `--perturb` one slice of each cell is changed by a hundredth, and a cell that
does not disagree then is the failure: a comparison that cannot fail says nothing.
"""

import argparse
import csv
import io
import json
import math
import subprocess
import sys

sys.dont_write_bytecode = True  # Nothing is left beside the sources.

import method

TOLERANCE = 1e-6

# ---- Reading -----------------------------------------------------------------------------------


def asked(program, *words):
    done = subprocess.run([program, *words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def rows(program, run, kind):
    return json.loads(asked(program, "export", run, "--format", "json", "--rows", kind))[kind]


def number(text):
    """A field of CSV: nothing is null."""
    if text in ("", "true", "false"):
        return {"": None, "true": True, "false": False}[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def csv_rows(program, run, kind):
    text = asked(program, "export", run, "--format", "csv", "--rows", kind, "--columns", "all")
    return [{k: number(v) for k, v in row.items()} for row in csv.DictReader(io.StringIO(text))]


class Stored:
    """A run as it is exported."""

    def __init__(self, program, run):
        self.slices = rows(program, run, "slices")
        self.cells = rows(program, run, "cells")
        self.arms = rows(program, run, "arms")
        self.shown = json.loads(asked(program, "show", run, "--json"))
        self.plan = self.shown["run"]["plan"]
        self.study = self.cells[0]["study"]
        self.same_in_csv = same(self.slices, csv_rows(program, run, "slices"))
        self.axes = AXES[self.study].split()

    def cell(self, row):
        return tuple(str(row[axis]) for axis in self.axes)


# What makes a cell, by study.
AXES = {
    "net": "receiver fields iovec working_set topology mode message_bytes threads ip mtu_bytes"
    " socket_buffer_bytes receive_size_bytes reap_batch uring_depth uring_batch",
    "file": "block_bytes cache pattern consumer depth threads",
    "write": "block_bytes destination pattern depth threads",
    "copy": "file_bytes block_bytes cache sync threads",
    "syscall": "calls_in_a_row threads",
    "server": "service length topology load connections workers",
}


def same(some, others):
    """Whether the rows of JSON and of CSV say the same."""
    def plain(value):
        return number(str(value)) if isinstance(value, str) else value

    pairs = zip(some, others)
    equal = all(plain(a[name]) == b[name] for a, b in pairs for name in a)
    return equal and len(some) == len(others)


# ---- Figures: "totals over totals" ---------------------------------------------------------------


def over(*columns):
    """A sum of columns."""
    return lambda count: None if None in [count(c) for c in columns] else sum(map(count, columns))


def less(column, part):
    return lambda count: None if None in (count(column), count(part)) else count(column) - count(part)


def times(factor, column):
    return lambda count: None if count(column) is None else factor * count(column)


SWITCHES = ("voluntary_switches", "involuntary_switches")


def both(column):
    """Of both ends, or of the one where there is no other."""

    def of(count):
        ends = ["tx_" + column] + (["rx_" + column] if count("rx_messages") is not None else [])
        return over(*ends)(count)

    return of


def both_switches(count):
    ends = [both(column)(count) for column in SWITCHES]
    return None if None in ends else sum(ends)


def net_figures():
    message = lambda count: method.arrived("net", count)
    return {
        "goodput_bits_per_s": (times(8e9, "rx_bytes"), over("time_ns"), "goodput_{}_bits_per_s"),
        "ns_per_message": (over("time_ns"), message, "ns_per_message_{}"),
        "ns_per_byte": (over("time_ns"), over("tx_bytes"), None),
        "tx_cpu_ns_per_byte": (over("tx_cpu_ns"), over("tx_bytes"), None),
        "rx_cpu_ns_per_byte": (over("rx_cpu_ns"), over("rx_bytes"), None),
        "tx_calls_per_message": (over("tx_calls"), over("tx_messages"), None),
        "tx_messages_per_call": (over("tx_messages"), over("tx_calls"), None),
        "tx_segments_per_message": (over("tx_segments_out"), over("tx_messages"), None),
        "context_switches_per_message": (both_switches, over("tx_messages"), None),
        "run_delay_ns_per_message": (both("run_delay_ns"), over("tx_messages"), None),
    }


def unit_figures(unit, counted, rate):
    """Of the studies with one end."""
    units = over(counted)
    figures = {
        f"ns_per_{unit}": (over("time_ns"), units, f"ns_per_{unit}_{{}}"),
        f"system_calls_per_{unit}": (over("system_calls"), units, None),
        f"context_switches_per_{unit}": (over(*SWITCHES), units, None),
        f"run_delay_ns_per_{unit}": (over("run_delay_ns"), units, None),
    }
    if unit == "call":
        figures["calls_per_s"] = (times(1e9, "calls"), over("time_ns"), None)
        moved = times(1e9 / 2**20, "bytes")
        # "Rates in MiB/s stand beside the calls that move a byte."
        figures["mib_per_s"] = (lambda count: moved(count) or None, over("time_ns"), None)
        figures["cpu_ns_per_call"] = (over("cpu_ns"), units, None)
        return figures
    if rate != "write":
        figures["device_share"] = (over("device_bytes"), over("bytes"), None)
    figures["ns_per_byte"] = (over("time_ns"), over("bytes"), None)
    figures["cpu_ns_per_byte"] = (over("cpu_ns"), over("bytes"), None)
    figures[f"{rate}_bytes_per_s"] = (
        times(1e9, "bytes"),
        over("time_ns"),
        f"{rate}_{{}}_bytes_per_s",
    )
    return figures


SPENT = (
    "cpu_ns voluntary_switches involuntary_switches minor_faults major_faults run_delay_ns"
).split()


def server_figures():
    figures = {
        "requests_per_s": (times(1e9, "replies_in_window"), over("window_ns"), "requests_per_s_{}"),
        "offered_per_s": (times(1e9, "requests_due"), over("window_ns"), "offered_per_s_{}"),
    }
    for end, units in (("server", "requests"), ("client", "replies")):
        of = over(f"{end}_{units}")
        for what in SPENT:
            name = f"{end}_{what}_per_request"
            spent = over(f"{end}_{what}")
            if (end, what) == ("client", "cpu_ns"):
                # "Its CPU time per request is without its polling."
                spent = less("client_cpu_ns", "client_polling_ns")
            figures[name] = (spent, of, name + "_{}")
        name = f"{end}_context_switches_per_request"
        figures[name] = (over(*(f"{end}_{switch}" for switch in SWITCHES)), of, name + "_{}")
    return figures


FIGURES = {
    "net": net_figures(),
    "file": unit_figures("block", "blocks", "read"),
    "write": unit_figures("block", "blocks", "write"),
    "copy": unit_figures("copy", "copies", "copied"),
    "syscall": unit_figures("call", "calls", None),
    "server": server_figures(),
}


# ---- Computing anew --------------------------------------------------------------------------------


class Recomputed:
    """Every number of a run that follows from its slices."""

    def __init__(self, stored, slices):
        self.stored, self.delta = stored, stored.plan["delta"]
        self.trials = method.trials_of(stored.study, slices, stored.axes)
        self.roles, self.refused = {}, set()
        for row in stored.cells:
            self.roles.setdefault(stored.cell(row), {})[row["arm"]] = row["role"]
            if row["status"] != "ok":
                self.refused.add((stored.cell(row), row["arm"]))
        self.groups = {
            cell: method.groups_of(self.shared(cell), roles) for cell, roles in self.roles.items()
        }
        self.count = self.comparisons()
        pairs = {cell: self.of_cell(cell) for cell in self.roles}
        told = "neighbours" in stored.shown
        self.neighbours = method.neighbours(self.series(pairs)) if told else None
        matters = self.neighbours is not None and self.neighbours["matters"]
        self.inflation = self.neighbours["inflation"] if matters else 1.0
        self.contrasts = {
            cell: [self.judged(cell, of) for of in quantities] for cell, quantities in pairs.items()
        }
        self.checks = {
            cell: [self.judged(cell, self.copies(cell, quantity)) for quantity in self.quantities(cell)]
            for cell in self.roles
        }
        self.stand_for_copies()

    def comparisons(self):
        """J; of messages the time alone is claimed, of servers the CPU time too."""
        groups = max(len(set(groups.values())) for groups in self.groups.values())
        server = self.stored.study == "server"
        claimed = {cell: len(self.quantities(cell)) if server else 1 for cell in self.roles}
        return method.comparisons(self.roles, max(groups, 1), claimed)

    def series(self, pairs):
        """The values of every contrast of the run, its copies' among them."""
        found = []
        for cell, quantities in pairs.items():
            for of, quantity in zip(quantities, self.quantities(cell)):
                copies = self.copies(cell, quantity).values()
                found += [method.series(own) for own in of.values()]
                found.append(method.series([pair for own in copies for pair in own]))
        return found

    def quantities(self, cell):
        """What is compared in a cell."""
        return method.compared(self.stored.study, dict(zip(self.stored.axes, cell)).get("load"))

    def shared(self, cell):
        return [trial for trial in self.trials.get(cell, []) if not trial.isolated]

    def of_cell(self, cell):
        """What each arm of a cell is against the baseline, by each quantity."""
        arms = [arm for arm, role in self.roles[cell].items() if role == "compared"]
        trials = self.trials.get(cell, [])
        return [
            {arm: self.pairs_of(cell, trials, arm, quantity) for arm in arms}
            for quantity in self.quantities(cell)
        ]

    def copies(self, cell, quantity):
        """The A/A arm in each group, by the arms of the group."""
        label = [arm for arm, role in self.roles[cell].items() if role == "self_check"]
        trials = self.trials.get(cell, [])
        groups = sorted(set(self.groups[cell].values()), key=sorted)
        if not label or not trials:
            return {}
        if len(groups) < 2:
            return {frozenset(): self.pairs_of(cell, trials, label[0], quantity)}
        own = lambda group: [trial for trial in self.shared(cell) if trial.members & group]
        return {group: self.pairs_of(cell, own(group), label[0], quantity) for group in groups}

    def pairs_of(self, cell, trials, label, quantity):
        """Of shared trials, or by pass where each arm is measured by itself."""
        shared = [trial for trial in trials if not trial.isolated]
        if self.shared(cell):
            sliced = "slices" in self.stored.plan["schedule"]
            return method.pairs_of_trials(shared, label, quantity, sliced)
        return method.pairs_of_passes(trials, label, quantity)

    def judged(self, cell, pairs):
        """Contrasts with their intervals."""
        return {
            arm: method.Contrast(found, self.count, self.inflation)
            for arm, found in pairs.items()
            if found
        }

    def stand_for_copies(self):
        """The row of the A/A arm has the widest of its groups."""
        width = lambda check: method.relative_half_width(check.pointwise) or -1.0
        for cell, roles in self.roles.items():
            label = [arm for arm, role in roles.items() if role == "self_check"]
            for contrasts, checks in zip(self.contrasts[cell], self.checks[cell]):
                if checks:
                    contrasts[label[0]] = max(checks.values(), key=width)

    def floor(self, cell, label):
        """The A/A contrast of the trials that an arm shares."""
        checks = self.checks[cell][0]
        own = self.groups[cell].get(label)
        if own in checks:
            return checks[own]
        return max(
            checks.values(),
            key=lambda check: method.relative_half_width(check.pointwise) or -1.0,
            default=None,
        )

    def lacks_baseline(self, cell):
        """Whether arms that are measured alone have a baseline that checks refused."""
        roles = self.roles[cell].items()
        refused = [arm for arm, role in roles if role == "baseline" and (cell, arm) in self.refused]
        return bool(refused) and not self.shared(cell)

    def pairs(self, cell, contrasts):
        """Pairs of arms of a cell that can be used."""
        if self.lacks_baseline(cell):
            return method.pairs_of_arms({}, self.count, self.inflation)
        ranked = {
            label: contrasts[label].pairs
            for label, role in self.roles[cell].items()
            if role == "compared" and label in contrasts and (cell, label) not in self.refused
        }
        return method.pairs_of_arms(ranked, self.count, self.inflation)

    def isolated_ratio(self, cell, label):
        """Of isolated trials that stand beside shared ones."""
        trials = [trial for trial in self.trials.get(cell, []) if trial.isolated]
        if not self.shared(cell):
            return None
        pairs = method.pairs_of_passes(trials, label, self.quantities(cell)[0])
        return method.Contrast(pairs, self.count, self.inflation).ratio if pairs else None

    def used(self, cell, label):
        """The trials that figures of an arm are of; of a baseline that was asked at two rates
        "its own figures are those at the rate of its kind"."""
        trials = self.shared(cell) or self.trials.get(cell, [])
        arms = [(trial.order, trial.arms[label]) for trial in trials if label in trial.arms]
        return [(at, arm) for at, arm in arms if not arm.at_others_rate] or arms

    def figure(self, cell, label, top, bottom):
        """"Totals over totals" of the trials of an arm."""
        some = [(at[0], top(arm.sum), bottom(arm.sum)) for at, arm in self.used(cell, label)]
        whole = [part for part in some if None not in part]
        if not whole or (len(whole) < len(some) and self.stored.study != "server"):
            return None, None
        return method.total(whole, self.inflation)


# ---- Comparing -------------------------------------------------------------------------------------


class Tally:
    """What was compared, and where the two disagree."""

    def __init__(self):
        self.numbers, self.words, self.pairs, self.largest, self.wrong = 0, 0, 0, 0.0, []

    def value(self, name, mine, theirs):
        # JSON has no infinity: it is null there.
        if mine is not None and math.isinf(mine):
            mine = None
        if mine is None and theirs is None:
            return
        self.numbers += 1
        if mine is None or theirs is None:
            return self.disagree(name, mine, theirs)
        off = abs(mine - theirs) / max(abs(mine), abs(theirs), 1e-9)
        self.largest = max(self.largest, off)
        if not off <= TOLERANCE:
            self.disagree(name, mine, theirs)

    def ends(self, name, mine, row, low, high):
        # METHOD.md: an upper end over ten times the lower one says nothing, and is not printed.
        if mine and (mine[0] > 0.0 or math.isinf(mine[1])) and not mine[1] <= mine[0] * 10.0:
            mine = None
        self.value(f"{name} low", mine and mine[0], row[low])
        self.value(f"{name} high", mine and mine[1], row[high])

    def word(self, name, mine, theirs):
        self.words += 1
        if mine != theirs:
            self.disagree(name, mine, theirs)

    def disagree(self, name, mine, theirs):
        self.wrong.append(f"{name}: {mine} recomputed, {theirs} printed")


def compare(recomputed):
    """Everything of a run."""
    tally, stored = Tally(), recomputed.stored
    tally.word("slices in CSV are those in JSON", True, stored.same_in_csv)
    tally.value("contrasts (J)", recomputed.count, stored.shown["contrasts"])
    checks = [check for each in recomputed.checks.values() for check in each[0].values()]
    checks = method.self_check(checks, recomputed.delta)
    for name, mine in checks.items():
        tally.value(f"self_check.{name}", mine, stored.shown["self_check"][name])
    compare_neighbours(tally, recomputed)
    histograms = {
        (row["pass"], row["position"], row["arm"]): row["latency_histogram"]["buckets"]
        for row in stored.arms
        if row.get("latency_histogram")
    }
    for row in stored.cells:
        compare_row(tally, recomputed, row)
        if "latency_p50_ns" in row:
            compare_times(tally, recomputed, histograms, row)
    compare_pairs(tally, recomputed)
    compare_crossovers(tally, recomputed)
    sums = trial_sums(stored)
    for row in stored.arms:
        compare_trial(tally, stored, sums, row)
    return tally


def compare_neighbours(tally, recomputed):
    """How much trials resemble those of the passes before them."""
    mine, printed = recomputed.neighbours or {}, recomputed.stored.shown.get("neighbours") or {}
    tally.word("neighbours", sorted(mine), sorted(printed))
    for name in mine.keys() & printed.keys():
        tally.value(f"neighbours.{name}", float(mine[name]), float(printed[name]))


def compare_row(tally, recomputed, row):
    """An arm in a cell."""
    cell, arm = recomputed.stored.cell(row), row["arm"]
    where = " ".join([arm, *cell])
    contrasts = recomputed.contrasts[cell]
    decides = contrasts[0].get(arm)
    if decides is not None:
        compare_contrast(tally, where, decides, row)
        compare_verdict(tally, recomputed, where, row)
        alone = recomputed.isolated_ratio(cell, arm)
        tally.value(f"{where} isolated_ratio", alone, row["isolated_ratio"])
    elif method.has_contrast(row["role"]):
        tally.value(f"{where} ratio", None, row["ratio"])
    cpu = contrasts[-1].get(arm)
    if cpu is not None and "cpu_ratio" in row and (len(contrasts) > 1 or cpu is decides):
        if row["cpu_ratio"] is not None or len(contrasts) > 1:
            compare_cpu(tally, where, cpu, row)
    for name, (top, bottom, ends) in FIGURES[recomputed.stored.study].items():
        if name not in row:
            continue
        value, interval = recomputed.figure(cell, arm, top, bottom)
        if name == "offered_per_s" and row.get("load") == "closed":
            value, interval = None, None
        tally.value(f"{where} {name}", value, row[name])
        if ends:
            tally.ends(f"{where} {name}", interval, row, ends.format("low"), ends.format("high"))


def compare_pairs(tally, recomputed):
    """Every two arms of a cell that are ranked, by each quantity."""
    printed = {}
    for row in recomputed.stored.shown["pairs"]:
        cell = recomputed.stored.cell(row)
        printed.setdefault((cell, row["by"] != "time"), {})[row["first"], row["second"]] = row
    for cell, quantities in recomputed.contrasts.items():
        for contrasts, quantity in zip(quantities, recomputed.quantities(cell)):
            rows = printed.pop((cell, quantity is method.cpu_of), {})
            mine = recomputed.pairs(cell, contrasts)
            tally.word(f"{' '.join(cell)} pairs", sorted(mine), sorted(rows))
            for both in mine.keys() & rows.keys():
                tally.pairs += 1
                where, row = f"{' against '.join(both)} {' '.join(cell)}", rows[both]
                ratio, n, ends = mine[both]
                tally.value(f"{where} ratio", ratio, row["ratio"])
                tally.value(f"{where} n", n, row["n"])
                limits = "ratio_simultaneous_low", "ratio_simultaneous_high"
                tally.ends(f"{where} simultaneous", ends, row, *limits)
    tally.word("other pairs", [], sorted(printed))


def compare_crossovers(tally, recomputed):
    """At each size what is said of two arms is their contrast, or that of the pair."""
    stored = recomputed.stored
    for crossover in stored.shown["crossovers"]:
        both = crossover["first"], crossover["second"]
        axes = {name: value for name, value in crossover["curve"].items() if name in stored.axes}
        for point in crossover["points"]:
            cells = {stored.cell(row) for row in stored.cells if is_at(row, axes, point["size"])}
            for cell in cells if len(cells) == 1 else ():
                compare_point(tally, recomputed, cell, both, point)


SIZES = "message_bytes", "block_bytes", "file_bytes"


def is_at(row, axes, size):
    own = [row[name] for name in SIZES if name in row]
    same = all(row[name] == value for name, value in axes.items() if name not in SIZES)
    return same and own[:1] == [size]


def compare_point(tally, recomputed, cell, both, point):
    contrasts, roles = recomputed.contrasts[cell][0], recomputed.roles[cell]
    first, second = both
    pairs = recomputed.pairs(cell, contrasts)
    if roles[first] == "baseline" and second in contrasts:
        ratio, ends = contrasts[second].ratio, contrasts[second].simultaneous
    elif both in pairs:
        ratio, ends = turned(*pairs[both][::2])
    elif both[::-1] in pairs:
        ratio, ends = pairs[both[::-1]][::2]
    else:
        return
    where = f"crossover {second} against {first} {' '.join(cell)}"
    tally.value(f"{where} ratio", ratio, point["ratio"])
    printed = point["simultaneous"] or {"low": None, "high": None}
    tally.ends(f"{where} simultaneous", ends, printed, "low", "high")


def turned(ratio, ends):
    return 1.0 / ratio, ends and (1.0 / ends[1], 1.0 / ends[0])


def compare_times(tally, recomputed, histograms, row):
    """Round trips, and times of requests from when they were due."""
    cell, arm = recomputed.stored.cell(row), row["arm"]
    passes, whole = {}, []
    for at, _ in recomputed.used(cell, arm):
        own = histograms.get((*at, arm))
        if not own:
            return
        passes.setdefault(at[0], []).extend(own)
        whole.append((at[0], sum(time * n for time, n in own), sum(n for _, n in own)))
    if not whole:
        return
    where = f"{arm} {' '.join(cell)}"
    mean, _ = method.total(whole, recomputed.inflation)
    tally.value(f"{where} latency_mean_ns", mean, row["latency_mean_ns"])
    tally.value(f"{where} samples", sum(n for _, _, n in whole), row["latency_samples"])
    for name, share in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999)):
        each = [passes[number] for number in sorted(passes)]
        value, ends = method.percentile(each, share, recomputed.inflation)
        tally.value(f"{where} latency_{name}_ns", value, row[f"latency_{name}_ns"])
        low, high = f"latency_{name}_low_ns", f"latency_{name}_high_ns"
        if low in row:
            tally.ends(f"{where} latency_{name}", ends, row, low, high)


def compare_contrast(tally, where, mine, row):
    tally.value(f"{where} n", mine.n, row["n"])
    tally.value(f"{where} ratio", mine.ratio, row["ratio"])
    tally.value(f"{where} ratio_sd_ln", mine.sd, row["ratio_sd_ln"])
    tally.ends(f"{where} ratio 95 %", mine.pointwise, row, "ratio_low", "ratio_high")
    both = "ratio_simultaneous_low", "ratio_simultaneous_high"
    tally.ends(f"{where} ratio simultaneous", mine.simultaneous, row, *both)
    tally.value(f"{where} total_ratio", mine.total, row["total_ratio"])
    tally.word(f"{where} tail", mine.tail(), row["tail"])


def compare_cpu(tally, where, mine, row):
    tally.value(f"{where} cpu_ratio", mine.ratio, row["cpu_ratio"])
    tally.ends(f"{where} cpu_ratio 95 %", mine.pointwise, row, "cpu_ratio_low", "cpu_ratio_high")
    both = "cpu_ratio_simultaneous_low", "cpu_ratio_simultaneous_high"
    tally.ends(f"{where} cpu_ratio simultaneous", mine.simultaneous, row, *both)


def compare_verdict(tally, recomputed, where, row):
    """The verdict and how many trials it would take; what a gate refused is taken from the row."""
    cell = recomputed.stored.cell(row)
    contrasts = recomputed.contrasts[cell][0]
    mine, floor = contrasts[row["arm"]], recomputed.floor(cell, row["arm"])
    width = floor and method.relative_half_width(floor.pointwise)
    limited = limits(recomputed, row) or is_unequal(recomputed, row)
    refused = row["status"] != "ok" or recomputed.lacks_baseline(cell)
    word = method.verdict(mine, row["role"], recomputed.delta, width, refused, limited)
    if not row["indicative"]:
        tally.word(f"{where} verdict", word, row["verdict"])
    needed = None
    if word == "INCONCLUSIVE" and mine.simultaneous is not None:
        noisy = inside(mine, recomputed.delta) and width is not None and width > recomputed.delta
        needed = method.trials_needed(mine, recomputed.delta, floor if noisy else None)
    tally.value(f"{where} trials_needed", needed, row["trials_needed"])


def inside(contrast, delta):
    low, high = contrast.pointwise90
    return 1.0 / (1.0 + delta) < low and high < 1.0 + delta


def overhead(recomputed, row):
    """Time in a slice that is not its messages', at most: the receipt's round trip where there is
    one, the harness's own else; a few calls in a row are measured with it."""
    calibration = recomputed.stored.shown["run"]["calibration"]
    if row.get("calls_in_a_row") is not None:
        return None
    receipt = recomputed.stored.study == "net" and row["topology"] != "sink"
    return calibration["receipt_round_trip_ns" if receipt else "harness_slice_ns"]


def is_unequal(recomputed, row):
    """Whether slices that are not equal in time may shift a ratio by more than half of delta."""
    cell, spent = recomputed.stored.cell(row), overhead(recomputed, row)
    if spent is None:
        return False
    alone = [t.baseline() for t in recomputed.trials.get(cell, []) if t.baseline()]
    alone = method.median([method.slice_time(arm) for arm in alone]) if alone else None
    pairs = recomputed.contrasts[cell][0][row["arm"]].pairs
    return method.shift(pairs, row["arm"], spent, alone) > recomputed.delta / 2.0


def limits(recomputed, row):
    """Whether the client's limit or another rate keeps an arm, or its baseline, from a rank."""
    if "rate_not_kept" not in row:
        return False
    cell = recomputed.stored.cell(row)
    base = [
        other
        for other in recomputed.stored.cells
        if recomputed.stored.cell(other) == cell and other["role"] == "baseline"
    ]
    column = "client_was_the_limit" if row["load"] == "closed" else "rate_not_kept"
    return any(each[column] is not None for each in [row, *base])


def compare_trial(tally, stored, sums, row):
    """What an arm did in a trial, used or not: sums over its slices that count."""
    arm = sums.get((row["pass"], row["position"], row["arm"]))
    where = f"{row['arm']} pass {row['pass']} position {row['position']}"
    for name, mine in TRIAL[stored.study].items() if arm is not None else ():
        tally.value(f"{where} {name}", mine(arm.sum), row[name])


def trial_sums(stored):
    """The slices that count, of each arm in each trial."""
    arms = {}
    for row in stored.slices:
        if row["kind"] == "measured":
            key = row["pass"], row["position"], row["arm"]
            arms.setdefault(key, method.Arm(row)).slices.append(row)
    return arms


def named(*columns):
    return {column: over(column) for column in columns}


def quotient(top, bottom):
    def of(count):
        parts = top(count), bottom(count)
        return parts[0] / parts[1] if None not in parts and parts[1] else None

    return of


ONE_END = named("time_ns", "system_calls", "bytes", "cpu_ns", *SWITCHES, "minor_faults")
ONE_END["context_switches"] = over(*SWITCHES)
TRIAL = {
    "net": named("time_ns", "tx_bytes", "rx_bytes", "tx_cpu_ns", "rx_cpu_ns", "tx_calls")
    | {"messages": over("tx_messages"), "context_switches": both_switches}
    | {name: both(name) for name in (*SWITCHES, "migrations", "minor_faults", "run_delay_ns")}
    | {"goodput_bits_per_s": quotient(times(8e9, "rx_bytes"), over("time_ns"))},
    "file": ONE_END | named("blocks"),
    "write": ONE_END | named("blocks"),
    "copy": ONE_END | named("copies"),
    "syscall": ONE_END | named("calls"),
    "server": named("time_ns", "window_ns", "replies_in_window", "requests_ok", "server_requests")
    | named(*(f"server_{what}" for what in SPENT), *(f"client_{what}" for what in SPENT))
    | named("client_replies", "client_bytes", "client_system_calls"),
}


# ---- The witness itself ------------------------------------------------------------------------------


def changed(stored, recomputed, cell):
    """The slices with one of them changed by a hundredth: the one in the middle of its trial, so
    that the trial's median moves too."""
    trials = recomputed.trials[cell]
    roles = recomputed.roles[cell]
    arms = [(t, arm) for t in trials for arm in t.arms.values() if roles[arm.label] == "compared"]
    trial, arm = arms[0]
    quantity = recomputed.quantities(cell)[0]
    column = "time_ns" if quantity is method.time_of else method.CPU[stored.study][0]
    costs = sorted(arm.slices, key=lambda row: row[column])
    victim = costs[len(costs) // 2]
    other = dict(victim, **{column: victim[column] * 1.01})
    return [other if row is victim else row for row in stored.slices]


def blind_cells(stored, recomputed):
    """Cells in which a changed slice goes unnoticed."""
    blind = []
    for cell in recomputed.trials:
        tally = compare(Recomputed(stored, changed(stored, recomputed, cell)))
        noticed = [line for line in tally.wrong if " ".join(cell) in line and "ratio" in line]
        if not noticed:
            blind.append(" ".join(cell))
    return blind


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iolens", default="iolens", help="the program")
    parser.add_argument("--perturb", action="store_true", help="change slices, expect to see it")
    parser.add_argument("runs", nargs="+", metavar="RUN")
    args = parser.parse_args()
    print("| run | study | cells | contrasts | pairs | numbers | words | largest relative difference |")
    print("|---|---|---|---|---|---|---|---|")
    wrong = []
    for run in args.runs:
        stored = Stored(args.iolens, run)
        recomputed = Recomputed(stored, stored.slices)
        tally = compare(recomputed)
        contrasts = sum(len(of) for cell in recomputed.contrasts.values() for of in cell)
        print(
            f"| {run} | {stored.study} | {len(recomputed.roles)} | {contrasts} | {tally.pairs} |"
            f" {tally.numbers} | {tally.words} | {tally.largest:.1e} |"
        )
        wrong += [f"{run}: {line}" for line in tally.wrong]
        if args.perturb:
            blind = blind_cells(stored, recomputed)
            print(f"one slice changed in each of {len(recomputed.trials)} cells: {len(blind)} unseen")
            wrong += [f"{run}: a changed slice of {cell} is not seen" for cell in blind]
    print("\n".join(wrong[:50]) if wrong else "nothing disagrees")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
