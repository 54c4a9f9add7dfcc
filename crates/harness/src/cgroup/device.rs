//! How much the cgroups of this process may read from and write to a device; see
//! Documentation/admin-guide/cgroup-v2.rst (`io.max`) and cgroup-v1/blkio-controller.rst.

use iolens_model::units::Bytes;
use iolens_sys::proc::Root;

use super::{Version, on_the_way_up};

/// What can be limited: the key of `io.max`, the file of version 1, what it is.
const KINDS: [(&str, &str, &str, Unit); 4] = [
    ("rbps", "read_bps_device", "reading", Unit::BytesPerS),
    ("wbps", "write_bps_device", "writing", Unit::BytesPerS),
    ("riops", "read_iops_device", "reading", Unit::RequestsPerS),
    ("wiops", "write_iops_device", "writing", Unit::RequestsPerS),
];

#[derive(Debug, Clone, Copy)]
enum Unit {
    BytesPerS,
    RequestsPerS,
}

/// A sentence for each limit on the way to the root, of both versions of cgroups:
/// `the cgroup limits reading from 8:0 to 50 MiB/s (/sys/fs/cgroup/a/io.max)`.
pub fn device_limits(root: &Root, (major, minor): (u32, u32)) -> Vec<String> {
    let device = whole_disk(root, &format!("{major}:{minor}"));
    let limits = on_the_way_up(root, "blkio", &["/blkio"], |folder, version| {
        let read = if version == Version::Unified { unified } else { version_1 };
        Some(read(root, folder, &device))
    });
    limits.into_iter().flatten().collect()
}

/// Limits are of whole disks: that of a partition is the folder above its own.
fn whole_disk(root: &Root, device: &str) -> String {
    let folder = format!("sys/dev/block/{device}");
    let above = root
        .read(&format!("{folder}/partition"))
        .and_then(|_| root.read(&format!("{folder}/../dev")));
    above.map_or_else(|_| device.to_owned(), |above| above.trim().to_owned())
}

/// `8:0 rbps=52428800 wbps=max riops=max wiops=max`.
fn unified(root: &Root, folder: &str, device: &str) -> Vec<String> {
    let file = format!("{folder}/io.max");
    let limits = of_device(root, &file, device).unwrap_or_default();
    let limit = |word: &str| {
        let (key, number) = word.split_once('=')?;
        let (.., what, unit) = KINDS.into_iter().find(|kind| kind.0 == key)?;
        Some(sentence(what, device, number.parse().ok()?, unit, &file))
    };
    limits.split_whitespace().filter_map(limit).collect()
}

/// `8:0 52428800`, in a file for each kind.
fn version_1(root: &Root, folder: &str, device: &str) -> Vec<String> {
    let limit = |(_, name, what, unit)| {
        let file = format!("{folder}/blkio.throttle.{name}");
        let number = of_device(root, &file, device)?.trim().parse().ok()?;
        Some(sentence(what, device, number, unit, &file))
    };
    KINDS.into_iter().filter_map(limit).collect()
}

/// What a file says of a device, behind its name.
fn of_device(root: &Root, file: &str, device: &str) -> Option<String> {
    let text = root.read(file).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(name, _)| *name == device).map(|(_, rest)| rest.to_owned())
}

fn sentence(what: &str, device: &str, number: u64, unit: Unit, file: &str) -> String {
    let toward = if what == "reading" { "from" } else { "to" };
    let limit = match unit {
        Unit::BytesPerS => format!("{}/s", Bytes(number)),
        Unit::RequestsPerS => format!("{number} requests per second"),
    };
    format!("the cgroup limits {what} {toward} the device {device} to {limit} (/{file})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::Machine;

    #[test]
    fn limits_of_both_versions_are_those_of_the_whole_disk() {
        let machine = Machine::with(&[
            ("proc/self/cgroup", "3:cpu,blkio:/b\n0::/a/inner\n"),
            ("sys/dev/block/8:1/partition", "1\n"),
            ("sys/dev/block/dev", "8:0\n"),
            ("sys/fs/cgroup/a/io.max", "9:9 rbps=1 wbps=1\n8:0 rbps=max wbps=52428800 riops=100"),
            ("sys/fs/cgroup/blkio/b/blkio.throttle.read_bps_device", "8:0 1048576\n"),
        ]);
        assert_eq!(
            device_limits(&machine.root(), (8, 1)),
            [
                "the cgroup limits reading from the device 8:0 to 1 MiB/s \
                 (/sys/fs/cgroup/blkio/b/blkio.throttle.read_bps_device)",
                "the cgroup limits writing to the device 8:0 to 50 MiB/s \
                 (/sys/fs/cgroup/a/io.max)",
                "the cgroup limits reading from the device 8:0 to 100 requests per second \
                 (/sys/fs/cgroup/a/io.max)",
            ]
        );
        assert_eq!(device_limits(&machine.root(), (7, 0)), [""; 0], "another device");
        assert_eq!(device_limits(&Machine::with(&[]).root(), (8, 1)), [""; 0]);
    }
}
