# As jq has it, and jaq has not.
def IN(values): . as $value | any(values; . == $value);

# Of the JSON that `iolens run … --json` prints.
def rows($method): [.cells[] | select(.primitive == $method)];
def in_role($role): [.cells[] | select(.role == $role)];
def own($method): [rows($method)[] | select(.role != "self_check")][0];
def judged($verdicts): [.[] | select(.verdict | IN($verdicts[]))];
# Whether a verdict is one, and no reason why there is none.
def is_judged: IN("FASTER", "SLOWER", "SMALL", "EQUIVALENT", "INCONCLUSIVE");

# Half of the pointwise interval of a row's ratio, as a fraction.
def width: (.ratio_high / .ratio_low | sqrt) - 1;

# `4096 B × 1: EQUIVALENT 0.999 [0.995, 1.004]`.
def words:
  def short: if type == "number" then . * 10000 | round / 10000 else . end;
  "\(.mode // "") \(.message_bytes // .block_bytes) B × \(.threads): \(.verdict) " +
  "\(.ratio | short) [\(.ratio_low | short), \(.ratio_high | short)] \(.reason // "")";

# A copy that is told apart from what it copies is INVALID, and never called a winner.
def not_the_same:
  select(.verdict | IN("SMALL", "EQUIVALENT", "INCONCLUSIVE", "UNRANKED") | not) | words;

# The methods that are ahead by a quantity, or at a size: not those of which any may be.
def ahead: select(.outcome | IN("fastest", "same")) | (.methods // [])[], .method | strings;
def rankings: .findings[] | select(.finding == "ranking");
def ranked($quantity): [rankings | select(.quantity == $quantity) | ahead];
def classic_ranked($bytes):
  [rankings | select(.setting.message_bytes == $bytes) | ahead
   | select(IN("send_staged", "sendmsg_iov", "sendmsg_zerocopy"))];

# A band of sizes in which a method overtakes the one with two copies.
def bands($method; $shapes):
  [.crossovers[] | select(.first == "send_staged" and .second == $method)
   | select(.shape | IN($shapes[]))];

# Of `classic-48`.
def classic:
  ["send_staged", "sendmsg_iov", "sendmsg_zerocopy"] as $methods
  | [.cells[] | select(.role != "self_check") | select(.primitive | IN($methods[]))];
def zerocopy: [classic[] | select(.primitive == "sendmsg_zerocopy")];
def contrast_widths:
  [.cells[] | select(.role | IN("compared", "self_check")) | select(.ratio_low) | width];

# The share of a class in the CPU time of both ends of an arm, of `explain`. Where there is none it
# has no part.
def share($arm; $class):
  [.attribution.arms[] | select(.arm == $arm).both.classes[]?
   | select(.class == $class).share.value]
  | .[0] // 0;

# The counters that the machine gives a thread.
def open_counters:
  [.run.host.facts[] | select(.group == "counters") | select(.name | startswith("counted"))
   | .value.exact | strings];

# Models of servers that work here, as the step before listed them.
def here: [$before.models[] | select(.available).name];
def is_measured: .status == "ok" and .server_cpu_ns_per_request > 0;
# Of what serves no connections that stay a first look has no numbers.
def is_apart: .status == "skipped" and (.primitive | IN("fork", "iterative"));

# Requests of a server's row that did not end well.
def wrong: [.requests_timeout, .requests_refused, .requests_reset, .requests_invalid,
            .requests_abandoned | numbers] | add // 0;
def is_crowd: .status == "ok" and .requests_ok >= 10000 and wrong == 0
              and .server_cpu_ns_per_request > 0;
def names_limit: .status == "skipped"
  and ([.reason // ""
        | contains("RLIMIT_NOFILE", "ip_local_port_range", "nf_conntrack_max")] | any);

# Of `tune`.
def over_dd: [.verdict.against[] | select(.work.program == "dd").ratio][0];

# Of an export of slices: those that count, and of these the ones that passes made.
def measured: [.slices[] | select(.kind == "measured")];
def counted: [measured[] | select(.pass != 0 and .calls_in_a_row == null)];
def is_of_both_ends: [.tx_calls, .rx_calls, .tx_cpu_ns, .rx_cpu_ns] | all(. != null and . > 0);
# Bits that arrived in a second, of messages of a size.
def arrived($bytes):
  [measured[] | select(.message_bytes == $bytes) | .rx_bytes * 8e9 / ([.time_ns, 1] | max)];
def median: sort | (.[(length - 1) / 2 | floor] + .[length / 2 | floor]) / 2;

# The comparisons of the first cell.
def contrasts_of_first_cell:
  .cells as $rows
  | ($rows | length) as $all
  | ([range(1; $all) | select($rows[.].role == "baseline")][0] // $all) as $end
  | [$rows[:$end][] | select(.role | IN("compared", "self_check")) | select(.status == "ok")];

# Of `compare`: `slow, time: SLOWER 0.8337 [0.833, 0.8344]`.
def change:
  "\(.arm), \(.quantity): \(.verdict) \(.ratio) [\(.pointwise.low), \(.pointwise.high)]";
def slow: .changes[] | select(.primitive == "slow");
def others: .changes[] | select(.primitive != "slow");
# 40 ms of work become 48, and what each of them costs is told by an arm with 20 in the same run:
# a part of what a request takes besides grows with its work.
def by_right($changes):
  .quantity as $quantity | .own.ns_a as $full
  | ($changes[] | select(.primitive == "half" and .quantity == $quantity) | .own.ns_a) as $half
  | $full / ($full + ($full - $half) * 8 / 20);

# What went wrong at a server, as it tells at its end.
def mishaps: .mishaps // {} | with_entries(select(.value != 0));

# Of `audit`, and of a file of planted rows: numbers of lines.
def called($severity): [.files[0].findings[] | select(.severity == $severity).lines[]] | unique;
def flagged: called("impossible") + called("suspicious") | unique;
def numbered($word): [split("\n") | to_entries[] | select(.value | startswith($word)).key + 1];

# Of what commands said, as `{"read-mmap": {"code": 0, "out": "…", "err": "…"}, …}`. One gives a
# result, or one message why not.
def messages: [.err | split("\n")[] | select(startswith("iolens: "))] | length;
def is_clear: .code != null and .code >= 0 and messages == (if .code == 0 then 0 else 1 end);
def first_line: .err | split("\n")[0] // "";
def printed: try (.out | fromjson) catch null;
def named($prefix): to_entries[] | select(.key | startswith($prefix)).value;
def names_fault: contains("EIO") or contains("SIGBUS");
def is_full: .value.err | contains("EDQUOT") or contains("SIGBUS");
def is_elsewhere: (.value.err | contains("EXDEV")) and .key != "copy-read_write";
def copies($engine):
  (.shown | printed.cells) as $cells | ("warm", "cold") as $cache
  | [$cells[] | select(.cache == $cache and .primitive == $engine)][0];

# Of the plan of block sizes. Direct reads are of whole sectors, of 512 B at most where this is run.
def cell: "\(.primitive), \(.cache), \(.block_bytes) B";
def shown: .cells[] | select(.status == "ok") | cell;
def is_direct: .primitive | contains("direct");
def is_small_direct: .status == "skipped" and is_direct and .block_bytes < 4096;
def curves:
  . as $run | ([.cells[].primitive] | unique[]) as $engine | ("warm", "cold") as $cache
  | {engine: $engine, cache: $cache,
     sizes: [$run.cells[] | select(.primitive == $engine and .cache == $cache).block_bytes]
            | unique | length,
     fit: [$run.cost_models[] | select(.label == $engine and .curve.cache == $cache)][0]};
def is_known:
  [.fixed_ns, .per_byte_ns, .half_size_bytes] | all((.interval.high | type) == "number");
def fit_words:
  def estimate: "\(.value) [\(.interval.low), \(.interval.high)]";
  "a \(.fixed_ns | estimate) ns, b \(.per_byte_ns | estimate) ns/B, knee " +
  "\(.half_size_bytes | estimate) B; \(.worst_residual) off at \(.worst_at) B; " +
  "breaks at \(.breaks_at)";

# Of slices, beside the run: those of cells that are shown, and why one is not what its cell says. A
# thousandth of the file may be in the page cache, or be missing there, and still be a remainder.
def of_shown: ($before | [shown | {(.): true}] | add) as $shown | .[] | select($shown[cell]);
def state_wrong:
  $before.run.file.bytes as $file
  | if [.resident_before_bytes, .device_bytes, .bytes] | any(. == null) then "a count is missing"
    elif .cache == "cold" and .resident_before_bytes > 0.001 * $file
      or .cache != "cold" and .resident_before_bytes < (1 - 0.001) * $file
    then "\(.resident_before_bytes) bytes were in the page cache before"
    elif (.cache == "cold" or is_direct) and .device_bytes < .bytes
      or (.cache == "cold" or is_direct | not) and .device_bytes > 0.001 * .bytes
    then "storage delivered \(.device_bytes) of \(.bytes) bytes"
    else empty end;

# Of searches for a rate.
def search($goal): [.searches[] | select((.goal == "knee") == ($goal == "knee"))][0];
def search_words:
  "\(.ended): kept at \(.kept_per_s), broken at \(.broken_per_s) per second, over " +
  "\(.levels // [] | length) rates \(.why // "")";
def holds($known): .kept_per_s / 1.05 <= $known and
  if .ended == "found"
  then .kept_per_s >= $known / 1.05 / 1.05
    and .broken_per_s != null and $known <= .broken_per_s * 1.05
  else .ended == "at_least" and .kept_per_s >= 0.8 * $known end;

# Of `doctor`, beside it what was possible when it was tried.
def claims:
  . as $said | $before | to_entries[] | .key as $name
  | {name: $name, possible: .value, state: [$said.findings[] | select(.name == $name).state][0]};
