//! What lies between this process and the hardware: a hypervisor, a container.

use std::fmt;

use iolens_sys::proc::Root;

/// What the kernel runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hypervisor {
    /// Nothing that shows.
    None,
    /// The Windows Subsystem for Linux, version 2: a guest of Hyper-V.
    Wsl2,
    /// Microsoft's.
    HyperV,
    /// Oracle's.
    VirtualBox,
    /// VMware's, of any name.
    Vmware,
    /// Of the Xen project.
    Xen,
    /// Of Parallels.
    Parallels,
    /// Linux' own.
    Kvm,
    /// There is one, and it does not say which.
    Unnamed,
}

impl fmt::Display for Hypervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Hypervisor::None => "no hypervisor",
            Hypervisor::Wsl2 => "WSL2",
            Hypervisor::HyperV => "Hyper-V",
            Hypervisor::VirtualBox => "VirtualBox",
            Hypervisor::Vmware => "VMware",
            Hypervisor::Xen => "Xen",
            Hypervisor::Parallels => "Parallels",
            Hypervisor::Kvm => "KVM",
            Hypervisor::Unnamed => "an unnamed hypervisor",
        })
    }
}

/// The hypervisor and what says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    /// Which.
    pub hypervisor: Hypervisor,
    /// What the virtual machine is sold or known as, by its firmware.
    pub product: Option<String>,
    /// The file or the instruction.
    pub source: &'static str,
}

impl Guest {
    /// Whether there is one.
    pub fn is_virtual(&self) -> bool {
        self.hypervisor != Hypervisor::None
    }

    /// `KVM (Amazon EC2 m5.large)`.
    pub fn words(&self) -> String {
        match &self.product {
            Some(product) if self.is_virtual() => format!("{} ({product})", self.hypervisor),
            _ => self.hypervisor.to_string(),
        }
    }
}

const VERSION: &str = "/proc/version";
const DMI: &str = "/sys/class/dmi/id";
const XEN: &str = "/sys/hypervisor/type";
const CPUID: &str = "CPUID leaf 0x40000000";
const FLAGS: &str = "/proc/cpuinfo";

/// The first processor's entry is at the beginning; all of the file takes
/// milliseconds to make on a machine with hundreds.
const CPUINFO_BYTES: usize = 8 << 10;

/// Finds the hypervisor: by the kernel's own name, the firmware's, and last by
/// `signature`, which is what CPUID says, because hypervisors imitate each
/// other there.
pub fn guest(root: &Root, signature: Option<&str>) -> Guest {
    let product = product(root);
    let guest = |hypervisor, source| Guest { hypervisor, product: product.clone(), source };
    let version = root.read("proc/version").unwrap_or_default();
    // `5.15.167.4-microsoft-standard-WSL2`
    if version.contains("WSL2") || version.contains("microsoft-standard") {
        return Guest { product: None, ..guest(Hypervisor::Wsl2, VERSION) };
    }
    if let Some(hypervisor) = by_firmware(root) {
        return guest(hypervisor, DMI);
    }
    if root.read("sys/hypervisor/type").is_ok_and(|kind| kind == "xen") {
        return guest(Hypervisor::Xen, XEN);
    }
    let by_signature = match signature {
        Some(name) if name.starts_with("KVMKVMKVM") => Some(Hypervisor::Kvm),
        Some("Microsoft Hv") => Some(Hypervisor::HyperV),
        Some("VMwareVMware") => Some(Hypervisor::Vmware),
        Some("XenVMMXenVMM") => Some(Hypervisor::Xen),
        Some("VBoxVBoxVBox") => Some(Hypervisor::VirtualBox),
        Some("prl hyperv" | " lrpepyh vr" | "lrpepyh vr") => Some(Hypervisor::Parallels),
        Some(_) => Some(Hypervisor::Unnamed),
        None => None,
    };
    if let Some(hypervisor) = by_signature {
        return guest(hypervisor, CPUID);
    }
    let hypervisor = if has_flag(root) { Hypervisor::Unnamed } else { Hypervisor::None };
    guest(hypervisor, FLAGS)
}

/// Vendors that sell hardware too are not in this list.
fn by_firmware(root: &Root) -> Option<Hypervisor> {
    let read = |file: &str| root.read(&format!("sys/class/dmi/id/{file}")).unwrap_or_default();
    let (vendor, product) = (read("sys_vendor"), read("product_name"));
    match (vendor.as_str(), product.as_str()) {
        ("innotek GmbH", _) | (_, "VirtualBox") => Some(Hypervisor::VirtualBox),
        ("VMware, Inc.", _) => Some(Hypervisor::Vmware),
        ("Microsoft Corporation", "Virtual Machine") => Some(Hypervisor::HyperV),
        ("Xen", _) => Some(Hypervisor::Xen),
        ("Parallels Software International Inc." | "Parallels International GmbH.", _) => {
            Some(Hypervisor::Parallels)
        }
        ("QEMU", _) => Some(Hypervisor::Kvm),
        (_, product) if product.starts_with("KVM") => Some(Hypervisor::Kvm),
        _ => None,
    }
}

/// Vendor and name in the firmware's tables, short enough for a line.
fn product(root: &Root) -> Option<String> {
    const CHARACTERS_MAX: usize = 40;
    let read = |file: &str| root.read(&format!("sys/class/dmi/id/{file}")).unwrap_or_default();
    let words = format!("{} {}", read("sys_vendor"), read("product_name"));
    let words: String = words.trim().chars().take(CHARACTERS_MAX).collect();
    (!words.is_empty()).then_some(words)
}

/// The flag that CPUID has zero on hardware.
fn has_flag(root: &Root) -> bool {
    let cpuinfo = root.beginning("proc/cpuinfo", CPUINFO_BYTES).unwrap_or_default();
    let mut lines = cpuinfo.lines().filter(|line| line.starts_with("flags"));
    lines.next().is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// What keeps this process apart from the rest of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// What made it, and the file that says so.
    pub named: Option<(String, &'static str)>,
    /// Kinds of namespaces that are not the machine's own; `None` where that
    /// cannot be seen.
    pub apart: Option<Vec<&'static str>>,
}

impl Container {
    /// Whether this is one. A file alone is no proof: an image that was
    /// unpacked onto a disk keeps it.
    pub fn is_one(&self) -> bool {
        match &self.apart {
            Some(kinds) => !kinds.is_empty(),
            None => self.named.is_some(),
        }
    }
}

/// The machine's own namespaces have fixed numbers
/// (include/uapi/linux/nsfs.h, `enum init_ns_ino`).
const OWN: [(&str, &str); 5] = [
    ("user", "user:[4026531837]"),
    ("pid", "pid:[4026531836]"),
    ("uts", "uts:[4026531838]"),
    ("ipc", "ipc:[4026531839]"),
    ("cgroup", "cgroup:[4026531835]"),
];

/// Looks for a container's marks and for namespaces of its own.
pub fn container(root: &Root) -> Container {
    let links = OWN.map(|(kind, own)| {
        let link = root.link(&format!("proc/self/ns/{kind}"));
        link.map(|link| (link != own).then_some(kind))
    });
    let is_told = links.iter().any(Option::is_some);
    let apart = is_told.then(|| links.into_iter().flatten().flatten().collect());
    Container { named: marks(root), apart }
}

fn marks(root: &Root) -> Option<(String, &'static str)> {
    // systemd's interface for containers: `container=podman` in the environment
    // of the first process, which only root can read.
    let environment = root.read("proc/1/environ").unwrap_or_default();
    let told = environment.split('\0').find_map(|entry| entry.strip_prefix("container="));
    if let Some(name) = told.filter(|name| !name.is_empty()) {
        return Some((short(name), "/proc/1/environ"));
    }
    if let Ok(name) = root.read("run/systemd/container") {
        return Some((short(&name), "/run/systemd/container"));
    }
    for (path, name, source) in [
        ("run/.containerenv", "podman", "/run/.containerenv"),
        (".dockerenv", "docker", "/.dockerenv"),
        ("run/.dockerenv", "docker", "/run/.dockerenv"),
    ] {
        if root.read(path).is_ok() {
            return Some((name.to_owned(), source));
        }
    }
    let groups = root.read("proc/1/cgroup").unwrap_or_default();
    let known = ["docker", "kubepods", "libpod", "containerd", "lxc", "garden"];
    let name = known.into_iter().find(|name| groups.contains(name));
    name.map(|name| (name.to_owned(), "/proc/1/cgroup"))
}

/// A name from outside, as it may stand in a line.
fn short(name: &str) -> String {
    let plain = name.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c));
    let name: String = plain.take(24).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use crate::scripted::Machine;

    use super::*;

    fn check(files: &[(&str, &str)], signature: Option<&str>, expect: (Hypervisor, &str)) {
        let machine = Machine::with(files);
        let guest = guest(&machine.root(), signature);
        assert_eq!((guest.hypervisor, guest.words().as_str()), expect, "{files:?}");
    }

    #[test]
    fn hypervisors_are_told_apart() {
        let vendor = "sys/class/dmi/id/sys_vendor";
        let product = "sys/class/dmi/id/product_name";
        let wsl2 = "Linux version 5.15.167.4-microsoft-standard-WSL2 (root@f9c826d3017f)";
        check(&[("proc/version", wsl2)], Some("Microsoft Hv"), (Hypervisor::Wsl2, "WSL2"));
        check(
            &[(vendor, "innotek GmbH"), (product, "VirtualBox")],
            Some("KVMKVMKVM"),
            (Hypervisor::VirtualBox, "VirtualBox (innotek GmbH VirtualBox)"),
        );
        check(
            &[(vendor, "Microsoft Corporation"), (product, "Virtual Machine")],
            None,
            (Hypervisor::HyperV, "Hyper-V (Microsoft Corporation Virtual Machine)"),
        );
        // A tablet of the same vendor.
        let tablet = [(vendor, "Microsoft Corporation"), (product, "Surface Pro")];
        check(&tablet, None, (Hypervisor::None, "no hypervisor"));
        check(
            &[(vendor, "Amazon EC2"), (product, "m5.large")],
            Some("KVMKVMKVM"),
            (Hypervisor::Kvm, "KVM (Amazon EC2 m5.large)"),
        );
        check(&[("sys/hypervisor/type", "xen")], None, (Hypervisor::Xen, "Xen"));
        check(&[], Some("VMwareVMware"), (Hypervisor::Vmware, "VMware"));
        check(&[], Some("bhyve bhyve "), (Hypervisor::Unnamed, "an unnamed hypervisor"));
        let flags = [("proc/cpuinfo", "processor : 0\nflags : fpu hypervisor sse\n")];
        check(&flags, None, (Hypervisor::Unnamed, "an unnamed hypervisor"));
        check(&[("proc/cpuinfo", "flags : fpu")], None, (Hypervisor::None, "no hypervisor"));
        check(&[], None, (Hypervisor::None, "no hypervisor"));
    }

    #[test]
    fn a_container_is_named_by_whatever_names_it() {
        let name = |files: &[(&str, &str)]| {
            let found = container(&Machine::with(files).root());
            found.named.map(|(name, source)| format!("{name} by {source}"))
        };
        let environment = "PATH=/bin\0container=systemd-nspawn\0";
        assert_eq!(
            name(&[("proc/1/environ", environment)]).unwrap(),
            "systemd-nspawn by /proc/1/environ"
        );
        assert_eq!(name(&[("run/.containerenv", "")]).unwrap(), "podman by /run/.containerenv");
        assert_eq!(name(&[(".dockerenv", "")]).unwrap(), "docker by /.dockerenv");
        let pod = "0::/kubepods.slice/kubepods-pod1.slice/cri-1.scope";
        assert_eq!(name(&[("proc/1/cgroup", pod)]).unwrap(), "kubepods by /proc/1/cgroup");
        assert_eq!(name(&[("proc/1/cgroup", "0::/init.scope")]), None);
        let odd = [("run/systemd/container", "a\u{1b}[2J b")];
        assert_eq!(name(&odd).unwrap(), "a2Jb by /run/systemd/container");
    }

    #[test]
    fn an_unpacked_image_is_no_container() {
        let machine = Machine::with(&[(".dockerenv", "")]);
        assert!(container(&machine.root()).is_one(), "nothing else is known");
        for (kind, own) in OWN {
            machine.link(&format!("proc/self/ns/{kind}"), own);
        }
        let found = container(&machine.root());
        assert_eq!(found.apart, Some(vec![]));
        assert!(!found.is_one());
        let machine = Machine::with(&[]);
        machine.link("proc/self/ns/pid", "pid:[4026532201]");
        assert_eq!(container(&machine.root()).apart, Some(vec!["pid"]));
    }
}
