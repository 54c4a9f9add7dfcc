//! What the processor says of its hypervisor: leaf 0x4000_0000 of the CPUID
//! instruction, which belongs to hypervisors (Intel SDM volume 2A, CPUID;
//! arch/x86/include/asm/cpuid/api.h, `cpuid_base_hypervisor`).

/// The signature of the hypervisor, such as `KVMKVMKVM` or `Microsoft Hv`;
/// nothing without one, and on processors that have no such instruction.
///
/// A hypervisor may imitate another one for the sake of its guests:
/// VirtualBox shows Linux the signature of KVM.
pub fn hypervisor() -> Option<String> {
    signature()
}

#[cfg(target_arch = "x86_64")]
fn signature() -> Option<String> {
    use std::arch::x86_64::__cpuid;
    /// CPUID.1:ECX, the bit that is zero on hardware.
    const HYPERVISOR: u32 = 1 << 31;
    if __cpuid(1).ecx & HYPERVISOR == 0 {
        return None;
    }
    let leaf = __cpuid(0x4000_0000);
    let bytes: Vec<u8> =
        [leaf.ebx, leaf.ecx, leaf.edx].into_iter().flat_map(u32::to_le_bytes).collect();
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_matches(|c: char| c == '\0' || c.is_whitespace());
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(not(target_arch = "x86_64"))]
fn signature() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_kernel_sees_the_same_hypervisor_or_none() {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let mut flags = cpuinfo.lines().filter(|line| line.starts_with("flags"));
        let is_guest = flags.next().unwrap().split_whitespace().any(|flag| flag == "hypervisor");
        assert!(is_guest || super::hypervisor().is_none());
    }
}
