//! `iolens serve`: a server by hand, in this process and in the foreground;
//! nothing is stored.

use std::process::ExitCode;

use iolens_engine::server::models::MODELS;
use iolens_engine::server::{News, Offer, Running, Server};
use iolens_engine::{Interrupts, host};
use iolens_model::served::Mishap;
use iolens_report::served;

use crate::args;
use crate::commands::net::{first_that_works, usable_cpus};
use crate::failure::{Failure, unusable, usage};
use crate::output;
use crate::output::style;
use crate::request::known_model;

/// Serves until the user ends it.
pub(crate) fn serve(args: &args::Serve) -> Result<ExitCode, Failure> {
    let model = known_model(&args.model).map_err(Failure::usage)?;
    if let (Some(_), None) = (args.workers, model.workers.word()) {
        let with: Vec<&str> =
            MODELS.iter().filter(|m| m.workers.word().is_some()).map(|m| m.id).collect();
        return Err(usage!(
            "`{}` has no number of threads or processes to choose: --workers is for {}",
            model.id,
            with.join(", ")
        ));
    }
    let cpus = usable_cpus(args.cpus.as_ref())?;
    let all = cpus.as_ref().unwrap_or(&host::limits(&host::Root::real()).cpus).len();
    let workers = args.workers.unwrap_or_else(|| u32::try_from(all.max(1)).unwrap_or(u32::MAX));
    let addresses = args.listen.resolve().map_err(Failure::usage)?;
    // Before anybody can connect, so that the end is in order whenever it comes.
    let interrupts =
        Interrupts::catch_in_scripts_too().map_err(|e| unusable!("cannot catch signals: {e}"))?;
    let server = first_that_works(&addresses, |&address| {
        Server::open(Offer {
            model,
            service: args.service.clone(),
            address,
            backlog: args.backlog,
            workers,
            close: args.close,
            stall_limit: args.stall_limit.as_duration(),
            cpus: cpus.clone(),
        })
    })?;
    let running =
        server.start().map_err(|why| unusable!("cannot serve with {} here: {why}", model.id))?;
    output::note(&format!("listening on {}", running.address()));
    let waited = watch(&running, &interrupts);
    let served = running.stop();
    output::result(&match args.json {
        true => served::json(&served),
        false => served::text(&served, &style()),
    });
    waited?;
    match served.failure {
        None => Ok(ExitCode::SUCCESS),
        Some(why) => Err(Failure::unusable(why)),
    }
}

/// Waits for the end, and says when something goes wrong for the first time.
fn watch(running: &Running, interrupts: &iolens_engine::Interrupts) -> Result<(), Failure> {
    let mut told: Vec<Mishap> = Vec::new();
    loop {
        let news = running.wait(interrupts);
        match news.map_err(|e| unusable!("cannot wait for the end: {e}"))? {
            News::Interrupted | News::Ended => return Ok(()),
            News::Mishaps => {
                for (mishap, _) in running.mishaps() {
                    if !told.contains(&mishap) {
                        told.push(mishap);
                        output::note(&format!("from now on counted: {}", mishap.text()));
                    }
                }
            }
        }
    }
}
