//! What each thread of the sending end opens before the first slice: its part of every arm.

use iolens_model::cell::{NetSetting, Setting};
use iolens_model::external::External;
use iolens_model::transport::SenderTask;
use iolens_model::trial::Trial;
use iolens_model::units::{Bytes, Nanos};

use super::super::crew::{Crew, Stop};
use super::super::external::{self, Bystander, LoopedProgram, Looping, SendingProgram};
use super::super::link;
use super::Way;
use iolens_file::arm::ReadGround;
use iolens_file::copy;
use iolens_harness::op::Sender;
use iolens_net::entry::{Ends, Link, Setup, Shape};
use iolens_net::registry;
use iolens_syscall::{Asked, UsersFile};

/// How an arm sends, `None` in studies without a network, and this thread's
/// sender of it.
pub(super) type Armed<'a> = (Option<Way>, Box<dyn Sender + 'a>);

/// Every arm's sender of this thread, its memory allocated and faulted in
/// here, on the CPU that uses it, in the trial's random order. An arm that
/// cannot be opened ends the trial as if its first slice had.
pub(super) fn open_senders<'a>(
    crew: &Crew<'a>,
    thread: usize,
    current: &mut Option<usize>,
) -> Result<Vec<Armed<'a>>, Stop> {
    let trial = crew.trial;
    let mut senders: Vec<Option<Armed<'a>>> = trial.arms.iter().map(|_| None).collect();
    for arm in trial.arms_as_they_run() {
        senders[arm] = Some(open_arm(crew, thread, arm).inspect_err(|_| {
            *current = trial.slices.iter().position(|slice| slice.arm == arm);
        })?);
    }
    Ok(senders.into_iter().flatten().collect())
}

/// This thread's end of an arm, which is a program of the user's or one of our methods.
fn open_arm<'a>(crew: &Crew<'a>, thread: usize, arm: usize) -> Result<Armed<'a>, Stop> {
    let trial = crew.trial;
    match (&trial.cell.setting, trial.program(arm)) {
        (Setting::Net(_), Some(program)) => open_program(crew, program, thread, arm),
        (Setting::File(_) | Setting::Syscall(_), Some(program)) => {
            open_looped(crew, program, thread, arm)
        }
        (Setting::Net(net), None) => open_sender(crew, net, thread, arm),
        (Setting::Syscall(_), None) => open_call(trial, arm),
        (Setting::File(_), None) | (Setting::Write(_), _) => open_engine(crew, thread, arm),
        (Setting::Copy(_), _) => open_copier(crew, thread, arm),
        (Setting::Server(_), _) => Err(Stop::cause("a server is a worker of its own".to_owned())),
        (Setting::Ab(_), _) => Err(Stop::cause("a program of `ab` has no worker".to_owned())),
    }
}

/// This thread's sender of a method of `net`.
fn open_sender<'a>(
    crew: &Crew<'a>,
    net: &NetSetting,
    thread: usize,
    arm: usize,
) -> Result<Armed<'a>, Stop> {
    let trial = crew.trial;
    let id = &trial.arms[arm].primitive;
    let entry = registry::find(id)
        .ok_or_else(|| Stop::cause(format!("this build knows no primitive `{id}`")))?;
    let link = match entry.ends {
        Ends::Pair => Link::Socket(crew.links.data(arm, thread)),
        Ends::SenderOnly => Link::None,
    };
    let shape = Shape {
        messages: trial.ring_messages as usize,
        message_bytes: usize::try_from(trial.cell.size.0).unwrap_or(usize::MAX),
        fields: net.fields as usize,
        iovec: net.iovec,
    };
    let setup = Setup { link, shape, tuning: net.tuning, stall_limit: link::stall_limit(trial) };
    let sender = (entry.open)(setup).map_err(|error| Stop::not_set_up(&error))?;
    Ok((Some(Way::of(entry)), sender))
}

/// A program of the user's in `net`, which the first thread has for all.
fn open_program<'a>(
    crew: &Crew<'a>,
    program: &'a External,
    thread: usize,
    arm: usize,
) -> Result<Armed<'a>, Stop> {
    let trial = crew.trial;
    if thread > 0 {
        return Ok((Some(external::WAY), Box::new(Bystander)));
    }
    let nowhere = || Stop::cause("the receiving end has no port for programs".to_owned());
    let receiver = crew.links.program_address(arm).ok_or_else(nowhere)?;
    let task = SenderTask {
        receiver,
        size: trial.cell.size,
        threads: trial.cell.threads,
        messages: 0,
        seconds: trial.trial_limit.0.div_ceil(Nanos::SECOND.0),
    };
    let mut cpus = trial.tx_cpus.clone();
    cpus.truncate(trial.cell.threads as usize);
    let lane = &crew.links.of_arm(arm)[thread];
    if trial.programs_loop {
        let argv = program.with_task(&task);
        let far = Some((receiver, lane.data()));
        let looping =
            Looping { trial, arm, thread, external: program, argv, cpus, processes: 1, far };
        return Ok((Some(external::WAY), Box::new(LoopedProgram::start(looping)?)));
    }
    let sender = SendingProgram::new(program, task, lane, cpus)?;
    Ok((Some(external::WAY), Box::new(sender)))
}

/// A program of the user's in a study without a network: each thread has a process of its own.
fn open_looped<'a>(
    crew: &Crew<'a>,
    external: &'a External,
    thread: usize,
    arm: usize,
) -> Result<Armed<'a>, Stop> {
    let trial = crew.trial;
    let argv = match &trial.cell.setting {
        Setting::File(setting) => {
            let ground = crew.ground.and_then(|ground| ground.read());
            let ground = ground.ok_or_else(|| Stop::cause("the trial names no file".to_owned()))?;
            external.with_file(ground.path(), trial.cell.size, &setting.pattern.to_string())
        }
        _ => external.with_size(trial.cell.size),
    };
    let cpus = vec![trial.tx_cpus[thread % trial.tx_cpus.len()]];
    let processes = trial.cell.threads;
    let looping = Looping { trial, arm, thread, external, argv, cpus, processes, far: None };
    Ok((None, Box::new(LoopedProgram::start(looping)?)))
}

/// This thread's end of an arm of `syscall`. What a call has no room for, or would do to a file
/// of the user's, it refuses: nothing has failed.
fn open_call(trial: &Trial, arm: usize) -> Result<Armed<'static>, Stop> {
    let id = &trial.arms[arm].primitive;
    let entry = iolens_syscall::find(id)
        .ok_or_else(|| Stop::cause(format!("this build knows no call `{id}`")))?;
    let file = trial.file.as_ref().map(ReadGround::open).transpose().map_err(Stop::cause)?;
    let bytes = file.as_ref().map(|file| Bytes(file.subject().bytes()));
    let asked = Asked::by(&trial.cell, bytes);
    // Where the work of a slice is a time, the run has asked before whether that can be.
    entry.allow(&trial.cell, bytes, true).map_err(Stop::refused)?;
    let theirs = file.as_ref().map(|file| UsersFile { path: file.path(), fd: file.subject().fd() });
    let setup = iolens_syscall::Setup { file: theirs, ..entry.setup(asked) };
    let sender = (entry.open)(&setup).map_err(|error| Stop::not_set_up(&error))?;
    Ok((None, sender))
}

/// This thread's end of an arm of `file` or `write`. What an engine refuses, it refuses of
/// this file or of blocks of this size: nothing has failed.
fn open_engine<'a>(crew: &Crew<'a>, thread: usize, arm: usize) -> Result<Armed<'a>, Stop> {
    let ground = crew.ground.ok_or_else(|| Stop::cause("the trial names no file".to_owned()))?;
    let opened = ground.arm(crew.trial, arm, thread);
    Ok((None, opened.map_err(Stop::refused)?))
}

/// This thread's end of an arm of `copy`.
fn open_copier<'a>(crew: &Crew<'a>, thread: usize, arm: usize) -> Result<Armed<'a>, Stop> {
    let site = crew.site.ok_or_else(|| Stop::cause("the trial names no files".to_owned()))?;
    let copier = copy::open(site, &crew.trial.arms[arm].primitive, &crew.trial.cell, thread);
    Ok((None, copier?))
}
