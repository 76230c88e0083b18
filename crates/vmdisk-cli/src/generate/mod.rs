//! `vmdisk generate`.

mod explain;
pub(crate) mod spec;
pub(crate) mod write;

use vmdisk::plan::{Spec, plan, script};
use vmdisk::{Facts, Target};

use crate::args::GenerateArgs;
use crate::color::Colors;
use crate::exit::Exit;
use crate::host::Host;
use crate::io::Io;
use crate::output::deliver;
use crate::stop::Stop;
use crate::wanted::Wanted;

/// Runs the command.
pub(crate) fn run(args: &GenerateArgs, io: &mut Io<'_>, colors: Colors) -> Result<Exit, Stop> {
    let mut known = Host::prepare(&args.host, None, io, colors)?;
    let asked = spec::of(args, io)?;
    if args.host.live {
        let wanted = wanted_facts(&asked.spec, &known.target());
        known.collect(wanted);
    }
    let target = known.target();
    let nothing = Facts::default();
    let facts = known.facts().unwrap_or(&nothing);
    let plan = plan(&asked.spec, facts, &target)
        .map_err(|errors| Stop(errors.iter().map(|error| asked.message(error)).collect()))?;
    let written = match write::guest(&plan, target.clone(), args.to, args.qemu_format)? {
        Some(written) => written,
        None => write::Written {
            text: script(&plan) + &write::daemons_as_comments(&plan.domain, target)?,
            warnings: Vec::new(),
        },
    };
    deliver(io, args.output.as_deref(), &written.text)?;
    for warning in &written.warnings {
        io.say(&format!("{}\n", warning.render(colors.stderr)));
    }
    if args.explain {
        io.say(&explain::choices(&plan));
    }
    Ok(Exit::Clean)
}

/// What the disks will be on: what a plan names that knows nothing of the host.
fn wanted_facts(spec: &Spec, target: &Target) -> Wanted {
    let mut wanted = Wanted::default();
    // What cannot be planned at all is complained about when it is planned in earnest.
    if let Ok(plan) = plan(spec, &Facts::default(), target) {
        wanted.add(&plan.domain);
    }
    wanted
}
