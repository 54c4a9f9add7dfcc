//! A process of others with all that it has started, and what they were charged; and the
//! sockets on which somebody listens.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::errno::Errno;
use crate::proc::{Root, io_number};

/// A process and all that descend from it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree {
    /// The processes, the first of them first.
    pub processes: Vec<u32>,
    /// The threads of all of them.
    pub threads: Vec<u32>,
}

impl Tree {
    /// The tree below a process, as it is now; empty where that has gone. Those whose
    /// parent has ended are no longer below it.
    ///
    /// Source: proc_pid_task(5), `children` (kernels with `CONFIG_PROC_CHILDREN`); without it,
    /// the parents of all processes, proc_pid_stat(5).
    pub fn below(root: &Root, pid: u32) -> Tree {
        let (mut tree, mut next) = (Tree::default(), vec![pid]);
        let mut by_parent = None;
        while let Some(pid) = next.pop() {
            let threads = root.names(&format!("proc/{pid}/task"));
            if !threads.is_empty() {
                tree.processes.push(pid);
            }
            for thread in threads {
                match root.read(&format!("proc/{pid}/task/{thread}/children")) {
                    Ok(text) => {
                        let ids = text.split_whitespace();
                        next.extend(ids.filter_map(|id| id.parse::<u32>().ok()));
                    }
                    // The thread has gone, or no thread has such a file.
                    Err(_) if by_parent.is_none() && !tells_children(root) => {
                        by_parent = Some(children_by_parent(root));
                    }
                    Err(_) => {}
                }
                tree.threads.extend(thread.parse::<u32>().ok());
            }
            next.extend(by_parent.iter_mut().filter_map(|all| all.remove(&pid)).flatten());
        }
        tree
    }
}

/// Whether the kernel tells the children of a thread.
fn tells_children(root: &Root) -> bool {
    root.path("proc/thread-self/children").exists()
}

/// The children of each process that has some, as the children themselves say it.
fn children_by_parent(root: &Root) -> HashMap<u32, Vec<u32>> {
    let mut all = HashMap::<u32, Vec<u32>>::new();
    for id in root.names("proc").into_iter().filter_map(|name| name.parse::<u32>().ok()) {
        let stat = root.read(&format!("proc/{id}/stat")).unwrap_or_default();
        // Behind the name come its state and its parent.
        let mut fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ');
        if let Some(parent) = fields.nth(1).and_then(|parent| parent.parse().ok()) {
            all.entry(parent).or_default().push(id);
        }
    }
    all
}

/// What a process was charged with all its threads, those that have ended too, and with
/// the children that it has waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Whole {
    /// CPU time of the children that it has waited for, in clock ticks.
    pub children_ticks: u64,
    /// Page faults of these children: whatever was executed has some.
    pub children_faults: u64,
    /// CPU time of its own in user mode and in the kernel, in clock ticks.
    pub ticks: [u64; 2],
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults that waited for I/O.
    pub major_faults: u64,
}

impl Whole {
    /// Page faults without I/O, and with.
    pub fn faults(&self) -> [u64; 2] {
        [self.minor_faults, self.major_faults]
    }
}

/// Reads it from /proc/PID/stat; `None` where the process has gone.
///
/// Source: proc_pid_stat(5); fs/proc/array.c, do_task_stat.
pub fn whole(root: &Root, pid: u32) -> Option<Whole> {
    let stat = root.read(&format!("proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_whitespace().collect();
    // Behind the name comes the third field.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Whole {
        children_ticks: field(16)? + field(17)?,
        children_faults: field(11)? + field(13)?,
        ticks: [field(14)?, field(15)?],
        minor_faults: field(10)? + field(11)?,
        major_faults: field(12)? + field(13)?,
    })
}

/// Context switches of a thread, because it waited and because the scheduler took the
/// CPU; `None` where it has gone.
pub fn switches(root: &Root, thread: u32) -> Option<[u64; 2]> {
    let status = root.read(&format!("proc/{thread}/status")).ok()?;
    let number = |name| io_number(&status, name);
    Some([number("voluntary_ctxt_switches")?, number("nonvoluntary_ctxt_switches")?])
}

/// Whether a process ignores SIGCHLD: nobody is charged for children of it that have ended
/// then. That a handler has `SA_NOCLDWAIT`, which does the same, is seen by nobody.
///
/// Source: proc_pid_status(5), `SigIgn`; kernel/signal.c, do_notify_parent.
pub fn ignores_children(root: &Root, pid: u32) -> bool {
    const SIGCHLD: u32 = 17;
    let status = root.read(&format!("proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (SIGCHLD - 1) & 1 == 1)
}

/// A socket on which somebody waits for connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listening {
    /// Where.
    pub address: SocketAddr,
    /// The socket's number, as descriptors show it.
    pub inode: u64,
}

/// The sockets on which somebody waits for connections, from the text of
/// /proc/net/tcp or /proc/net/tcp6.
///
/// Source: proc_pid_net(5); net/ipv4/tcp_ipv4.c, get_tcp4_sock: words of the address are
/// numbers of this machine's byte order.
pub fn tcp_listeners(text: &str) -> Vec<Listening> {
    /// `TCP_LISTEN`, include/net/tcp_states.h.
    const LISTEN: &str = "0A";
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().take(10).collect();
        let [_, local, _, LISTEN, .., inode] = fields[..] else { return None };
        let (words, port) = local.split_once(':')?;
        let word = |at: usize| {
            let digits = words.get(8 * at..8 * at + 8)?;
            Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
        };
        let ip: IpAddr = match words.len() {
            8 => Ipv4Addr::from(word(0)?).into(),
            32 => {
                let mut bytes = [0; 16];
                for (at, piece) in bytes.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                    *piece = word(at)?;
                }
                Ipv6Addr::from(bytes).to_canonical()
            }
            _ => return None,
        };
        let address = SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?);
        Some(Listening { address, inode: inode.parse().ok()? })
    };
    text.lines().filter_map(of_line).collect()
}

/// Whether a process or one that it started has a socket; `None` where that cannot be known:
/// somebody's descriptors may not be read.
///
/// Source: proc_pid_fd(5).
pub fn has_socket(root: &Root, pid: u32, inode: u64) -> Option<bool> {
    let tree = Tree::below(root, pid);
    let mut is_known = true;
    for &pid in &tree.processes {
        match holds(root, pid, inode) {
            Some(true) => return Some(true),
            // What has gone meanwhile has no descriptors.
            None => is_known &= root.names(&format!("proc/{pid}/task")).is_empty(),
            Some(false) => {}
        }
    }
    is_known.then_some(false)
}

/// Copies of the sockets of a process, which it goes on using (pidfd_getfd(2), Linux 5.6); those
/// that it closes meanwhile are left out.
///
/// Errors: its descriptors may not be read; `EPERM` where it may not be traced (ptrace(2)).
pub fn sockets_of(root: &Root, pid: u32) -> Result<Vec<OwnedFd>, Errno> {
    let id = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::ESRCH)?;
    let process = pidfd_open(id, PidfdFlags::empty())?;
    let folder = format!("proc/{pid}/fd");
    std::fs::read_dir(root.path(&folder))?;
    let mut sockets = Vec::new();
    for name in root.names(&folder) {
        let target = std::fs::read_link(root.path(&format!("{folder}/{name}")));
        let is_socket =
            target.is_ok_and(|target| target.as_os_str().as_bytes().starts_with(b"socket:"));
        let Some(number) = name.parse().ok().filter(|_| is_socket) else { continue };
        match pidfd_getfd(&process, number, PidfdGetfdFlags::empty()) {
            Ok(fd) => sockets.push(fd),
            Err(rustix::io::Errno::BADF) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(sockets)
}

/// A process of this machine that has a socket, with its name; `None` where none of those has it
/// whose descriptors may be read.
pub fn holder(root: &Root, inode: u64) -> Option<(u32, String)> {
    let all = root.names("proc").into_iter().filter_map(|name| name.parse::<u32>().ok());
    let pid = all.into_iter().find(|&pid| holds(root, pid, inode) == Some(true))?;
    Some((pid, root.read(&format!("proc/{pid}/comm")).ok()?))
}

/// Whether a process has a socket; `None` where its descriptors may not be read.
fn holds(root: &Root, pid: u32, inode: u64) -> Option<bool> {
    let wanted = format!("socket:[{inode}]");
    let folder = format!("proc/{pid}/fd");
    std::fs::read_dir(root.path(&folder)).ok()?;
    let mut is_known = true;
    for fd in root.names(&folder) {
        let path = format!("{folder}/{fd}");
        match std::fs::read_link(root.path(&path)) {
            Ok(target) if target.to_str() == Some(&*wanted) => return Some(true),
            Ok(_) => {}
            // It was closed meanwhile.
            Err(e) => is_known &= e.kind() == std::io::ErrorKind::NotFound,
        }
    }
    is_known.then_some(false)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::fork::{self, Patience};

    #[test]
    fn a_tree_has_threads_and_children() {
        let root = Root::real();
        let child = fork::start(|| {
            loop {
                std::thread::park();
            }
        });
        let child = child.unwrap();
        let tree = Tree::below(&root, std::process::id());
        assert_eq!(tree.processes[0], std::process::id());
        assert!(tree.processes.contains(&child) && tree.threads.contains(&child));
        assert!(tree.threads.contains(&crate::process::thread_id()));
        assert!(whole(&root, std::process::id()).unwrap().minor_faults > 0);
        assert!(whole(&root, child).is_some());
        assert!(switches(&root, crate::process::thread_id()).is_some());
        fork::kill(child).unwrap();
        while !matches!(fork::ended(Patience::Waits), Ok(Some(_))) {}
        assert_eq!(Tree::below(&root, child), Tree::default());
        assert_eq!((whole(&root, child), switches(&root, child)), (None, None));
    }

    /// As on a kernel without `CONFIG_PROC_CHILDREN`.
    #[test]
    fn a_tree_is_known_where_only_the_children_name_their_parents() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        for (id, parent, threads) in
            [(10, 1, vec![10, 11]), (12, 10, vec![12]), (13, 12, vec![13]), (14, 1, vec![14])]
        {
            for thread in threads {
                std::fs::create_dir_all(root.path(&format!("proc/{id}/task/{thread}"))).unwrap();
            }
            let stat = format!("{id} (a) S 14 b) S {parent} {id} {id} 0 -1 0 0\n");
            std::fs::write(root.path(&format!("proc/{id}/stat")), stat).unwrap();
            std::fs::create_dir(root.path(&format!("proc/{id}/fd"))).unwrap();
        }
        let mut tree = Tree::below(&root, 10);
        tree.threads.sort_unstable();
        assert_eq!((tree.processes, tree.threads), (vec![10, 12, 13], vec![10, 11, 12, 13]));
        assert_eq!(Tree::below(&root, 14).processes, [14]);
        assert_eq!(Tree::below(&root, 15), Tree::default());
        std::os::unix::fs::symlink("socket:[7]", root.path("proc/13/fd/3")).unwrap();
        assert_eq!(has_socket(&root, 10, 7), Some(true));
        assert_eq!(has_socket(&root, 14, 7), Some(false));
    }

    #[test]
    fn who_listens_is_found_by_port() {
        let root = Root::real();
        for (ip, file) in [("127.0.0.1:0", "tcp"), ("[::1]:0", "tcp6"), ("0.0.0.0:0", "tcp")] {
            // There may be no IPv6 here.
            let Ok(listener) = TcpListener::bind(ip) else { continue };
            let address = listener.local_addr().unwrap();
            let text = root.read(&format!("proc/self/net/{file}")).unwrap();
            let found = tcp_listeners(&text).into_iter().find(|found| found.address == address);
            let inode = found.unwrap_or_else(|| panic!("{address}")).inode;
            let own = std::process::id();
            assert_eq!(has_socket(&root, own, inode), Some(true));
            let name = root.read("proc/self/comm").unwrap();
            assert_eq!(holder(&root, inode), Some((own, name)));
            let all = sockets_of(&root, own).unwrap().into_iter().map(TcpListener::from);
            assert!(all.into_iter().any(|copy| copy.local_addr().ok() == Some(address)));
        }
        let other = "  sl  local_address rem_address   st\n   0: 0100007F:1F90 00000000:0000 01\n";
        assert_eq!(tcp_listeners(other), []);
        assert_eq!(holder(&root, u64::MAX), None);
    }
}
