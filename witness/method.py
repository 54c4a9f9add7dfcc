"""METHOD.md as arithmetic: from slices to ratios, intervals, verdicts and figures.

Written from its words alone, in another language than the tool and without any of its
code; the sentence that a step follows stands beside it, in quotation marks. Nothing but the
standard library is used, so the quantiles of t are computed here too.
"""

import math
from collections import namedtuple
from functools import lru_cache
from itertools import combinations

# ---- Student's t and the binomial distribution -------------------------------------------


def beta_fraction(a, b, x):
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    value = d
    for m in range(1, 100_000):
        for top in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1.0 + top * d, 1.0 + top / c
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = c if abs(c) > tiny else tiny
            value *= d * c
        if abs(d * c - 1.0) < 1e-16:
            return value
    raise ArithmeticError(f"no end at a = {a}, b = {b}, x = {x}")


def beta(a, b, x):
    """The regularized incomplete beta function."""
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    logs = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(logs + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1.0) / (a + b + 2.0):
        return front * beta_fraction(a, b, x) / a
    return 1.0 - front * beta_fraction(b, a, 1.0 - x) / b


def t_above(t, freedom):
    """P(T > t) for t > 0."""
    return 0.5 * beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))


@lru_cache(maxsize=None)
def t_quantile(above, freedom):
    """The t that is exceeded with this probability, by bisection."""
    low, high = 0.0, 1.0
    while t_above(high, freedom) > above:
        low, high = high, 2.0 * high
    while high - low > 1e-15 * high:
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        low, high = (middle, high) if t_above(middle, freedom) > above else (low, middle)
    return (low + high) / 2.0


def binomial_bound(trials, share=0.05, level=0.99):
    """The smallest k with P(X <= k) >= level."""
    total = 0.0
    for k in range(trials):
        total += math.comb(trials, k) * share**k * (1.0 - share) ** (trials - k)
        if total >= level:
            return k
    return trials


# ---- What a slice counts -----------------------------------------------------------------

# A unit of work of each study, and the CPU time that is compared in it. "What a message
# costs in CPU time of the threads of both ends is compared in the same way"; "A closed loop
# has both contrasts" (server).
UNITS = {
    "net": "tx_messages",
    "file": "blocks",
    "write": "blocks",
    "copy": "copies",
    "syscall": "calls",
    "server": "server_requests",
}
CPU = {"net": ("tx_cpu_ns", "rx_cpu_ns"), "server": ("server_cpu_ns", None)}


def arrived(study, count):
    """Messages. "Time is divided by the messages that arrived": over UDP less were received."""
    units, sent, received = count(UNITS[study]), count("tx_bytes"), count("rx_bytes")
    lost = sent is not None and received is not None and received < sent
    return units * received / sent if lost else units


def time_of(study, count):
    """Time over messages."""
    return count("time_ns"), arrived(study, count)


def cpu_of(study, count):
    """CPU time over messages, "of the threads of both ends" and of a server "all threads and
    children of the server ... over the requests that it answered"."""
    own, others = CPU[study]
    spent = count(own)
    if others is not None and count("rx_messages") is not None:
        received = count(others)
        spent = None if spent is None or received is None else spent + received
    units = count(UNITS[study]) if study == "server" else arrived(study, count)
    return spent, units


def compared(study, load):
    """What is compared in a cell; the first decides. "closed loop: time per request, besides
    server CPU time; at a rate: server CPU time per request"."""
    if study == "server":
        return [time_of, cpu_of] if load == "closed" else [cpu_of]
    return [time_of, cpu_of] if study in CPU else [time_of]


def parts(study, quantity, count):
    """So much over so many messages, or null where it was not counted or is nothing."""
    over, under = quantity(study, count)
    return (over, under) if over and under else None


# ---- Trials --------------------------------------------------------------------------------


class Arm:
    """An arm in a trial: its slices that count."""

    def __init__(self, row):
        self.label, self.role = row["arm"], row["role"]
        self.rate = row.get("rate_per_s")
        self.at_others_rate = bool(row.get("at_others_rate"))
        self.slices = []
        self.sums = {}

    def sum(self, column):
        """Over "rounds that count"; "a reading that failed is missing, not zero"."""
        if column not in self.sums:
            values = [row.get(column) for row in self.slices]
            self.sums[column] = None if None in values else sum(values)
        return self.sums[column]

    def in_round(self, number):
        """The counts of one round."""
        rows = [row for row in self.slices if row["round"] == number]

        def count(column):
            values = [row.get(column) for row in rows]
            return None if not values or None in values else sum(values)

        return count if rows else None


class Trial:
    """One cell in one fresh set of worker processes."""

    def __init__(self, study, row):
        self.study, self.isolated = study, row["isolated"]
        self.order = (row["pass"], row["position"])
        self.arms = {}
        # Every arm that it had, those that cannot be used too.
        self.members = set()

    def baseline(self):
        own = [arm for arm in self.arms.values() if arm.role == "baseline"]
        return own[0] if own else None


def trials_of(study, rows, axes):
    """The trials of each cell, in their order. Of what an analysis rests on are slices that
    count, of arms in trials that no gate refused."""
    cells = {}
    for row in rows:
        cell = cells.setdefault(tuple(str(row[axis]) for axis in axes), {})
        trial = cell.setdefault((row["pass"], row["position"]), Trial(study, row))
        trial.members.add(row["arm"])
        if row["kind"] == "measured" and row["unused"] is None:
            trial.arms.setdefault(row["arm"], Arm(row)).slices.append(row)
    return {cell: [trials[at] for at in sorted(trials)] for cell, trials in cells.items()}


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2.0


def ln_ratio(base, arm):
    return math.log((base[0] / base[1]) / (arm[0] / arm[1]))


def of_rounds(trial, arm, quantity, sliced):
    """The trial's value: "For each round, the logarithm of the baseline's time per message
    over the arm's. The trial's value is the median over its rounds". Arms "one after the other
    in the classic way ... have no rounds": there it is that of the totals."""
    base = trial.baseline()
    if not sliced:
        whole = [parts(trial.study, quantity, each.sum) for each in (base, arm)]
        return ln_ratio(*whole) if None not in whole else None
    values = []
    for number in sorted({row["round"] for row in arm.slices}):
        counts = [each.in_round(number) for each in (base, arm)]
        if None in counts:
            continue
        both = [parts(trial.study, quantity, count) for count in counts]
        if None not in both:
            values.append(ln_ratio(*both))
    return median(values) if values else None


# What one trial says: its value, and the totals of both arms.
Pair = namedtuple("Pair", "trial rate value base arm")


def pairs_of_trials(trials, label, quantity, sliced):
    """"Each is judged against what ran just before and after it": within the trial."""
    found = []
    for trial in trials:
        arm, base = trial.arms.get(label), trial.baseline()
        if arm is None or base is None:
            continue
        whole = [parts(trial.study, quantity, each.sum) for each in (base, arm)]
        value = of_rounds(trial, arm, quantity, sliced)
        if value is not None and None not in whole:
            found.append(Pair(trial, arm.rate, value, *whole))
    return found


def pairs_of_passes(trials, label, quantity):
    """Arms that are "each measured by themselves ... share one baseline, at a rate one for each
    kind; an arm's partner is the baseline of its pass at its rate"."""
    bases = {}
    for trial in trials:
        base = trial.baseline()
        whole = base and parts(trial.study, quantity, base.sum)
        if whole:
            bases[trial.order[0], base.rate] = whole
    found = []
    for trial in trials:
        arm = trial.arms.get(label)
        whole = arm and parts(trial.study, quantity, arm.sum)
        base = arm and bases.get((trial.order[0], arm.rate))
        if whole and base:
            found.append(Pair(trial, arm.rate, ln_ratio(base, whole), base, whole))
    return found


# ---- Intervals -----------------------------------------------------------------------------


def mean(values):
    return math.fsum(values) / len(values)


def spread(values):
    """Standard deviation with n - 1; null under two values."""
    if len(values) < 2:
        return None
    centre = mean(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1))


def critical(above, n, inflation):
    """t(n - 1); of trials that resemble their neighbours "all intervals of the run use n / F
    trials: t(n / F - 1) * sqrt(F (n - 1) / (n - F))". Null without freedom."""
    if n < 2 or n <= inflation:
        return None
    widening = math.sqrt(inflation * (n - 1) / (n - inflation)) if inflation > 1.0 else 1.0
    return t_quantile(above, n / inflation - 1) * widening


def half_width(values, above, inflation):
    """t * s / sqrt(n)."""
    sd, t = spread(values), critical(above, len(values), inflation)
    return None if sd is None or t is None else t * sd / math.sqrt(len(values))


def interval(values, above, inflation):
    """exp(mean +- half-width)."""
    half = half_width(values, above, inflation)
    if half is None:
        return None
    return exponential(mean(values) - half), exponential(mean(values) + half)


def exponential(value):
    """exp(value), without an end: of two trials that differ by much an interval has none."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def relative_half_width(ends):
    """The half-width as a fraction of the ratio: exp(half-width of ln) - 1."""
    return None if ends is None else math.sqrt(ends[1] / ends[0]) - 1.0


# "t at 97.5 %"; "t at 1 - 0.025 / J" (Bonferroni); "the pointwise 90 % interval".
POINTWISE, POINTWISE90 = 0.025, 0.05


def simultaneous(count):
    return 0.025 / count


def groups_of(trials, roles):
    """Arms that share their trials: a cell with more arms than a trial holds has several groups
    of arms, each with the baseline and a copy of it. By label; those two are in all."""
    groups = {}
    for trial in trials:
        own = {label for label in trial.members if roles[label] in ("compared", "control")}
        met = own.union(*(groups[label] for label in own & groups.keys()))
        groups.update({label: frozenset(met) for label in met})
    return groups


def comparisons(cells, groups, quantities):
    """J, "the number of comparisons in the table that makes the claims": arms against the
    baseline, its copy in each group, and every two arms, by each quantity that is claimed; an
    arm that cannot run in a cell counts all the same, "since J is fixed before the data"."""
    found = 0
    for cell, roles in cells.items():
        compared = sum(role == "compared" for role in roles.values())
        copies = sum(role == "self_check" for role in roles.values())
        found += quantities[cell] * (compared + math.comb(compared, 2) + copies * groups)
    return found


def has_contrast(role):
    return role in ("compared", "self_check")


class Contrast:
    """An arm against the baseline."""

    def __init__(self, pairs, count, inflation):
        self.pairs, self.values = pairs, [pair.value for pair in pairs]
        self.n, self.mean, self.sd = len(pairs), mean(self.values), spread(self.values)
        # "The ratio that is shown is the geometric mean over trials."
        self.ratio = math.exp(self.mean)
        self.count, self.inflation = count, inflation
        self.pointwise = interval(self.values, POINTWISE, inflation)
        self.pointwise90 = interval(self.values, POINTWISE90, inflation)
        self.simultaneous = interval(self.values, simultaneous(count), inflation)
        self.total, self.total_interval = quotient_of_totals(pairs, inflation)

    def tail(self):
        """"Where the two disagree beyond their intervals": neither lies in the other's. Less
        than a millionth apart is rounding."""
        if self.pointwise is None or self.total_interval is None:
            return False
        apart = abs(self.total / self.ratio - 1.0) > 1e-6
        return apart and not (
            within(self.total, self.pointwise) or within(self.ratio, self.total_interval)
        )


def within(value, ends):
    return ends[0] <= value <= ends[1]


def of_sums(some):
    return math.fsum(part[0] for part in some) / math.fsum(part[1] for part in some)


def influences(some):
    """How much each trial pulls at the logarithm of a total over a total: "the ratio
    estimator's first-order terms"."""
    over, under = (math.fsum(part[i] for part in some) for i in (0, 1))
    return [len(some) * (part[0] / over - part[1] / under) for part in some]


def total(some, inflation):
    """"Totals over totals", with its interval over passes; of what was zero in all, zero."""
    some = of_passes(some)
    over, under = (math.fsum(part[i] for part in some) for i in (0, 1))
    if under <= 0.0:
        return None, None
    if over <= 0.0:
        return over / under, None
    return over / under, around(over / under, influences(some), inflation)


def of_passes(some):
    """What the trials of each pass add together: those of one pass "saw the machine in one mood
    and are no independent values"."""
    passes = {}
    for number, top, bottom in some:
        sums = passes.setdefault(number, [0.0, 0.0])
        sums[0], sums[1] = sums[0] + top, sums[1] + bottom
    return [tuple(passes[number]) for number in sorted(passes)]


def around(value, pulls, inflation):
    half = half_width(pulls, POINTWISE, inflation)
    return None if half is None else (value * exponential(-half), value * exponential(half))


def quotient_of_totals(pairs, inflation):
    """"Beside it stands the ratio of total times.\""""
    bases, arms = [pair.base for pair in pairs], [pair.arm for pair in pairs]
    value = of_sums(bases) / of_sums(arms)
    pulls = [a - b for a, b in zip(influences(bases), influences(arms))]
    return value, around(value, pulls, inflation)


# ---- Times of single messages and requests -----------------------------------------------------


def quantile(histogram, share):
    """The smallest time that this share of all does not exceed; pairs of a time and its count."""
    wanted = max(math.ceil(share * sum(n for _, n in histogram) * (1.0 - 2.0**-52)), 1)
    seen = 0
    for time, n in sorted(histogram):
        seen += n
        if seen >= wanted:
            return time
    return None


def enough(histogram, share):
    """"It is shown from 3.7 / (1 - q) times on (370 for p99)."""
    return sum(n for _, n in histogram) * (1.0 - share) >= 3.7 * (1.0 - 1e-9)


def percentile(passes, share, inflation):
    """"Read from one histogram, in which the counts of all trials are added", and "has an interval
    only where every single trial has as many. The interval is that of t over the trials' own
    percentiles, on the logarithm, laid around the pooled one". A histogram for each pass."""
    whole = [bucket for histogram in passes for bucket in histogram]
    if not whole or not enough(whole, share):
        return None, None
    value = quantile(whole, share)
    if not all(enough(histogram, share) for histogram in passes):
        return value, None
    return value, around(value, [math.log(quantile(one, share)) for one in passes], inflation)


# ---- Trials that resemble their neighbours ---------------------------------------------------

PASSES_LEAST = 8
LAGS_MOST = 100


def series(pairs):
    """A contrast's values by pass; of several in a pass their mean."""
    passes = {}
    for pair in pairs:
        passes.setdefault(pair.trial.order[0], []).append(pair.value)
    return {number: mean(values) for number, values in passes.items()}


def neighbours(found):
    """"From 8 passes on the contrasts' values, each contrast scaled to the same spread, are
    pooled". Null with fewer."""
    found = [one for one in found if len(one) >= PASSES_LEAST]
    passes = sorted({number for one in found for number in one})
    scaled = [row for row in (scale(one, passes) for one in found) if row]
    if not scaled:
        return None
    n, lags = len(passes), range(1, min(len(passes), LAGS_MOST))
    each = {
        lag: [
            math.fsum(row[at - lag] * row[at] for row in scaled) / len(scaled)
            for at in range(lag, n)
        ]
        for lag in lags
    }
    sums = {lag: math.fsum(values) for lag, values in each.items()}
    factor = inflation_of(sums, n)
    matters = factor > 1.35 and beyond_chance(each, sums, n) > 1.645
    lag1 = correlation(sums, n, 1, factor)
    return {
        "lag1": lag1,
        "inflation": factor,
        "passes": n,
        "contrasts": len(scaled),
        "matters": matters,
    }


def scale(one, passes):
    """Less the mean, with squares that add up to 1; 0 where a pass has no value."""
    values = list(one.values())
    centre = mean(values)
    norm = math.sqrt(math.fsum((value - centre) ** 2 for value in values))
    return [(one.get(at, centre) - centre) / norm for at in passes] if norm > 1e-9 else None


def correlation(sums, n, lag, factor):
    """The autocorrelation at a lag, "corrected for the mean that they are taken from". How,
    METHOD.md does not say in full: a mean takes F / n of what all values have in common away."""
    return sums[lag] * n / (n - lag) * (1.0 - factor / n) + factor / n


def inflation_of(sums, n):
    """"The sum of the pooled autocorrelations over Geyer's initial positive sequence, at most a
    quarter of the passes"; it is in the correction of what it follows from."""
    last = 1
    while last + 1 < min(n // 4, len(sums)):
        both = correlation(sums, n, last + 1, 1.0) + correlation(sums, n, last + 2, 1.0)
        if both <= 0.0:
            break
        last += 2
    factor = 1.0
    for _ in range(20):
        shares = [
            2.0 * (1.0 - lag / n) * correlation(sums, n, lag, factor) for lag in range(1, last + 1)
        ]
        factor = min(max(1.0 + math.fsum(shares), 1.0), n / 4.0)
    return factor


def beyond_chance(each, sums, n):
    """"Autocorrelation at lags 1 to 3 (weights 1, 2/3, 1/3), tested one-sided at 5 % against what
    pairs of passes have in common by chance": in standard deviations."""
    chance = -1.0 / (n * (n - 1))
    all_pairs = [value for values in each.values() for value in values]
    variance = math.fsum(v * v for v in all_pairs) / len(all_pairs) - chance**2
    weights = [(1, 1.0), (2, 2.0 / 3.0), (3, 1.0 / 3.0)]
    excess = math.fsum(w * (sums[lag] - (n - lag) * chance) for lag, w in weights)
    return excess / math.sqrt(math.fsum(w * w * (n - lag) * variance for lag, w in weights))


# ---- Verdicts --------------------------------------------------------------------------------


def verdict(contrast, role, delta, floor, invalid, unranked):
    """The table of "Verdicts", "in this order"; the floor is the A/A arm's half-width. The A/A
    arm differs from the baseline by a fault of the measurement, and so it is INVALID then."""
    low, high = 1.0 / (1.0 + delta), 1.0 + delta
    if invalid:
        return "INVALID"
    if unranked and role != "self_check":
        return "UNRANKED"
    if contrast.pointwise90 is None:
        return "INCONCLUSIVE"
    quiet = floor is None or floor <= delta
    if low < contrast.pointwise90[0] and contrast.pointwise90[1] < high and quiet:
        return "EQUIVALENT"
    if contrast.simultaneous[0] > high:
        return "INVALID" if role == "self_check" else "FASTER"
    if contrast.simultaneous[1] < low:
        return "INVALID" if role == "self_check" else "SLOWER"
    return "INCONCLUSIVE" if within(1.0, contrast.simultaneous) else "SMALL"


def trials_needed(contrast, delta, floor):
    """"How many trials would decide, about (t * s / ln(1 + delta))^2": the smallest n at which
    the simultaneous half-width is delta. Where it is that narrow already, as many as exclude 1
    or fit the 90 % interval inside, whichever comes first. `floor` is the A/A contrast where it
    is what keeps an arm from EQUIVALENT: then as many as narrow that."""
    wanted = math.log1p(delta)
    inflation = contrast.inflation
    if floor is not None:
        return trials_for(floor.sd, wanted, POINTWISE, inflation)
    level = simultaneous(contrast.count)
    by_width = trials_for(contrast.sd, wanted, level, inflation)
    if by_width is None or by_width > contrast.n:
        return by_width
    distance = abs(contrast.mean)
    soonest = [
        trials_for(contrast.sd, distance, level, inflation),
        trials_for(contrast.sd, wanted - distance, POINTWISE90, inflation),
    ]
    soonest = [n for n in soonest if n is not None]
    return max(min(soonest), contrast.n + 1) if soonest else None


def trials_for(sd, half, above, inflation, most=1_000_000):
    """The smallest n with t * s / sqrt(n) <= half; null beyond a million."""
    if sd is None or half <= 0.0:
        return None

    def is_enough(n):
        if n < 2 or n <= inflation:
            return False
        widening = math.sqrt(inflation * (n - 1) / (n - inflation)) if inflation > 1.0 else 1.0
        if sd == 0.0:
            return True
        return t_above(half * math.sqrt(n) / sd / widening, n / inflation - 1) <= above

    if not is_enough(most):
        return None
    short, long = 1, most
    while long - short > 1:
        middle = (short + long) // 2
        short, long = (short, middle) if is_enough(middle) else (middle, long)
    return long


def slice_time(arm):
    """The middle one of an arm's slices in a trial, the later of two."""
    times = sorted(row["time_ns"] for row in arm.slices)
    return times[len(times) // 2]


def shift(pairs, label, overhead, alone):
    """"A remark with the possible bias c * |1/T_b - 1/T_a|": how far slices that are not equal
    in time may move a ratio, c being what a slice holds besides its messages. `alone` is the
    baseline's, where arms are measured by themselves."""
    moved = []
    for pair in pairs:
        base = pair.trial.baseline()
        beside = slice_time(base) if base is not None else alone
        if beside is None:
            return 0.0
        moved.append(overhead / beside - overhead / slice_time(pair.trial.arms[label]))
    return abs(mean(moved)) if moved else 0.0


# ---- Several arms against each other ---------------------------------------------------------


def pairs_of_arms(contrasts, count, inflation):
    """"Two arms of which neither is the baseline are compared through the differences of their
    values in the same trials", and arms that share no trial "through the baseline that each had
    beside it, by pass, where they were asked for the same", with intervals "that cover all
    contrasts and all pairs together"."""
    found = {}
    for first, second in combinations(contrasts, 2):
        both = contrasts[first], contrasts[second]
        values = differences(*both, lambda pair: pair.trial.order)
        if not values and asked(both[0]) == asked(both[1]) and len(asked(both[0])) == 1:
            values = differences(*both, lambda pair: pair.trial.order[0])
        if values:
            ends = interval(values, simultaneous(count), inflation)
            found[first, second] = math.exp(mean(values)), len(values), ends
    return found


def differences(first, second, key):
    others = {key(pair): pair.value for pair in second}
    return [pair.value - others[key(pair)] for pair in first if key(pair) in others]


def asked(pairs):
    """Rates that an arm was asked for."""
    return {pair.rate for pair in pairs}


# ---- The A/A arm -------------------------------------------------------------------------------


def self_check(checks, delta, least=5):
    """"About one A/A interval in twenty excludes 1 by chance ... Only when there are more of them
    than chance explains (99 % binomial bound) is the run called untrustworthy." One of fewer
    than five trials counts for nothing."""
    widths = [relative_half_width(check.pointwise) for check in checks]
    widths = [width for width in widths if width is not None]
    counted = [check for check in checks if check.pointwise is not None and check.n >= least]
    low, high = 1.0 / (1.0 + delta), 1.0 + delta
    return {
        "checks": len(widths),
        "counted": len(counted),
        "excluding_one": sum(not within(1.0, check.pointwise) for check in counted),
        "bound": binomial_bound(len(counted)),
        "floor_widest": max(widths, default=None),
        "floor_median": median(widths) if widths else None,
        "judged": sum(c.simultaneous[0] > high or c.simultaneous[1] < low for c in counted),
    }
