# As jq has it, and jaq has not.
def IN(values): . as $value | any(values; . == $value);

# Of the JSON that `iolens run … --json` prints.
def rows($method): [.cells[] | select(.primitive == $method)];
def in_role($role): [.cells[] | select(.role == $role)];
def own($method): [rows($method)[] | select(.role != "self_check")][0];
def judged($verdicts): [.[] | select(.verdict | IN($verdicts[]))];

# Half of the pointwise interval of a row's ratio, as a fraction.
def width: (.ratio_high / .ratio_low | sqrt) - 1;

# `4096 B × 1: EQUIVALENT 0.999 [0.995, 1.004]`.
def words:
  def short: if type == "number" then . * 10000 | round / 10000 else . end;
  "\(.mode // "") \(.message_bytes // .block_bytes) B × \(.threads): \(.verdict) \(.ratio | short) " +
  "[\(.ratio_low | short), \(.ratio_high | short)] \(.reason // "")";

# The methods that are ahead by a quantity, or at a size.
def ahead: (.methods // [])[], .method, .lowest | strings;
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
  [.attribution.arms[] | select(.arm == $arm).both.classes[]? | select(.class == $class).share.value]
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
  and ([.reason // "" | contains("RLIMIT_NOFILE", "ip_local_port_range", "nf_conntrack_max")] | any);
