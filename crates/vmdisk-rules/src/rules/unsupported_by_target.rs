//! `unsupported-by-target`

use std::cell::LazyCell;
use std::collections::HashSet;
use std::sync::LazyLock;

use vmdisk_facts::capability::CapabilityRow;
use vmdisk_facts::{Answer, Basis, Capability, Component, Probe, Version};
use vmdisk_fields::{
    ControllerName, DiskName, OLDEST_LIBVIRT, OLDEST_QEMU, Phrase, phrase, unused_members,
};
use vmdisk_model::{Domain, FieldPath};
use vmdisk_rule::{Confidence, Context, Evidence, Group, Missing, Report, Severity, declare_rule};
use vmdisk_source::WordKind;

use crate::features::{FEATURES, Feature, Without};

declare_rule! {
    /// The configuration uses a feature that the target's QEMU or libvirt does not have.
    ///
    /// ## What it reports
    /// Compares the configuration with the table that `vmdisk facts qemu` prints: the features of QEMU and libvirt,
    /// with the first and last version of each. With `--qemu PATH`, the answer of the program decides. With `--target`
    /// or facts, the version decides, and the finding says that this is assumed. `machine-missing-in-qemu` reports
    /// machine types. On command lines, only QEMU is checked.
    ///
    /// ## Why it matters
    /// QEMU refuses options it does not know, and the guest does not start. libvirt refuses unknown values, but
    /// silently drops unknown elements and attributes, which is a warning here.
    ///
    /// ## Use instead
    /// Remove the feature, or run the guest on the version that the finding names.
    /// `vmdisk facts qemu --target qemu=VERSION,libvirt=VERSION` lists the features of a target.
    ///
    /// ## Reported
    /// ```xml,reported,qemu-7.2,libvirt-10.0
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>4</vcpu>
    ///   <iothreads>2</iothreads>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' queues='4'>
    ///         <iothreads>
    ///           <iothread id='1'/>
    ///           <iothread id='2'/>
    ///         </iothreads>
    ///       </driver>
    ///       <source file='/srv/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Every element, attribute and value of a disk is compared with the first libvirt that had it. This element is new
    /// in 9.8:
    /// ```xml,reported,libvirt-9.0
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='ssh' name='/srv/a.img'>
    ///     <host name='store.example' port='22'/>
    ///     <knownHosts path='/etc/ssh/known_hosts'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// libvirt 9.0 drops the attribute, and the guest starts without it:
    /// ```xml,reported,libvirt-9.0
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' discard='unmap' discard_no_unref='on'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```args,reported,qemu-5.2
    /// qemu-system-x86_64 -nodefaults -machine q35 -object iothread,id=io0,thread-pool-max=8 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda,iothread=io0
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,qemu-10.0,libvirt-10.0
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <vcpu>4</vcpu>
    ///   <iothreads>2</iothreads>
    ///   <os><type machine='pc-q35-9.2'>hvm</type></os>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='qcow2' queues='4' discard_no_unref='on'>
    ///         <iothreads>
    ///           <iothread id='1'/>
    ///           <iothread id='2'/>
    ///         </iothreads>
    ///       </driver>
    ///       <source file='/srv/web1.qcow2'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Not checked without a target:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' discard='unmap' discard_no_unref='on'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```args,not-reported,hidden,qemu-5.1
    /// qemu-system-x86_64 -machine q35 -drive if=none,id=d0,format=raw,file=/srv/a.img -device nvme,drive=d0,serial=x
    /// ```
    /// ```xml,not-reported,hidden,libvirt-9.0
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='nbd' name='a'>
    ///     <host name='nbd1.example'/>
    ///     <identity username='fred'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```args,reported,hidden,qemu-11.1
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=gluster,node-name=f0,volume=vol,path=a.img,server.0.type=inet,server.0.host=a.example,server.0.port=24007 \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    /// ```xml,reported,hidden,libvirt-9.7
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <blockio discard_granularity='4096'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden,libvirt-11.6
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <blockio discard_granularity='0'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,reported,hidden,libvirt-9.7
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <blockio discard_granularity='0'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "unsupported-by-target",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by("QEMU 5.2 and 7.2", "Parameter 'discard-no-unref' is unexpected", "since 8.1"),
        Evidence::refused_by("QEMU 7.2", "Property 'virtio-blk-pci.iothread-vq-mapping' not found", "since 9.0"),
        Evidence::refused_by("QEMU 5.2", "Property 'iothread.thread-pool-max' not found", "since 7.1"),
        Evidence::measured("a QEMU accepts the features that it reports, and refuses the others: 17 options on each of 4 versions", "QEMU 5.2, 7.2, 10.0 and 11.1 of Debian, tests/tests/real_qemu/capabilities.rs"),
        Evidence::measured("of 34 words, the oldest of libvirt 7.0, 9.0 keeps 13, refuses 5 and silently drops 16, and 11.3 keeps 26, refuses 3 and drops 5, as reported here", "virsh define and dumpxml of libvirt 9.0 and 11.3, tests/tests/integration/silent.rs"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    report_versioned_syntax(context, report);
    if context.target.is_open() {
        let features = MISSING_SOMEWHERE.iter();
        for feature in features.filter(|feature| applies(context, feature)) {
            report_unknown(context, report, feature);
        }
        return;
    }
    let dropped = LazyCell::new(|| dropped_by_libvirt(context));
    for feature in FEATURES.iter().filter(|feature| applies(context, feature)) {
        let row = feature.capability.row();
        match context.can(feature.capability) {
            Answer::Yes(_) => {}
            Answer::Unknown if is_everywhere(row) => {}
            Answer::No(basis) => {
                let is_for_qemu = row.component == Component::Qemu;
                let places = feature.places(context.domain).into_iter();
                // QEMU does not get what libvirt leaves out.
                for at in places.filter(|at| !(is_for_qemu && dropped.contains(at))) {
                    report_missing(context, report, feature, row, basis, at);
                }
            }
            Answer::Unknown => report_unknown(context, report, feature),
        }
    }
}

/// The features that some considered version lacks: the only ones that can be unknown.
static MISSING_SOMEWHERE: LazyLock<Vec<&'static Feature>> = LazyLock::new(|| {
    let is_missing = |feature: &&Feature| !is_everywhere(feature.capability.row());
    FEATURES.iter().filter(is_missing).collect()
});

/// False for features of libvirt if it is not involved. A command line may have `-device nvme` without namespaces, as all
/// versions do.
fn applies(context: &Context<'_>, feature: &Feature) -> bool {
    let is_of_libvirt = feature.capability.row().component == Component::Libvirt
        || feature.capability == Capability::NvmeNamespaceDevice;
    !is_of_libvirt || context.is_for_libvirt()
}

/// Reports that it is not known whether the target has a feature.
fn report_unknown(context: &Context<'_>, report: &mut Report, feature: &Feature) {
    for at in feature.places(context.domain) {
        let row = feature.capability.row();
        let missing = match row.probe {
            Probe::BlockDriver(driver) if context.target.qemu.is_some() => context.missing(
                || format!("the block driver `{driver}` of QEMU"),
                "builds and packages leave it out, and QEMU was not asked",
            ),
            _ => context.missing(
                || format!("the version of {}", program(row.component)),
                "no target was given",
            ),
        };
        report.not_checked(at, missing);
    }
}

/// The settings that the target's libvirt leaves out of QEMU's command line.
fn dropped_by_libvirt(context: &Context<'_>) -> HashSet<FieldPath> {
    if !context.is_for_libvirt() {
        return HashSet::new();
    }
    let is_dropped = |feature: &&Feature| {
        feature.capability.row().component == Component::Libvirt
            && matches!(feature.without, Without::Ignored)
            && context.can(feature.capability).is_no()
    };
    let dropped = FEATURES.iter().filter(is_dropped);
    dropped
        .flat_map(|feature| feature.places(context.domain))
        .collect()
}

/// True if every considered version supports it.
fn is_everywhere(row: &CapabilityRow) -> bool {
    let oldest = match row.component {
        Component::Qemu => OLDEST_QEMU,
        Component::Libvirt => OLDEST_LIBVIRT,
        Component::Kernel | Component::Machine => return false,
    };
    let is_in_each_build = !matches!(row.probe, Probe::BlockDriver(_));
    (row.since.0, row.since.1, row.since.2) <= oldest && row.until.is_none() && is_in_each_build
}

/// Reports elements, attributes and values that are newer than the target's libvirt; the table of features has priority.
fn report_versioned_syntax(context: &Context<'_>, report: &mut Report) {
    use vmdisk_model::{DiskField, ImageField, Protocol};

    let libvirt = context.target.libvirt;
    let may_matter = |since| libvirt.is_some() || since > OLDEST_LIBVIRT;
    let mut words = context.versioned_syntax.iter();
    if !words.any(|word| may_matter(word.since)) {
        return;
    }
    let mut reported = HashSet::new();
    let of_libvirt = |feature: &&Feature| feature.capability.row().component == Component::Libvirt;
    for feature in FEATURES.iter().filter(of_libvirt) {
        reported.extend(feature.places(context.domain));
    }
    // Another libvirt would not use them either.
    for (index, _, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            if let Protocol::Network(source) = &image.protocol {
                let fields = unused_members(source).map(|member| member.field);
                reported.extend(fields.map(|field| FieldPath::Image(index, depth, field)));
            }
        }
    }
    for word in context.versioned_syntax {
        // The type of a source is a field of the disk and one of the image.
        let twin = word
            .at
            .disk()
            .filter(|index| word.at == FieldPath::Disk(*index, DiskField::SourceType))
            .map(|index| FieldPath::Image(index, 0, ImageField::Source));
        // The parts of an identity are reported together.
        let around = match word.at {
            FieldPath::Image(index, depth, field) => field
                .parent()
                .map(|around| FieldPath::Image(index, depth, around)),
            _ => None,
        };
        let mut same = [Some(word.at), twin, around].into_iter().flatten();
        if same.any(|at| reported.contains(&at)) {
            continue;
        }
        let (major, minor, micro) = word.since;
        let since = Version(major, minor, micro);
        let Some(libvirt) = libvirt else {
            if word.since > OLDEST_LIBVIRT {
                let missing = Missing::new("the version of libvirt", "no target was given");
                report.not_checked(word.at, missing);
            }
            continue;
        };
        if !word.unknown_to((libvirt.0, libvirt.1, libvirt.2)) {
            continue;
        }
        let (severity, does) = match word.kind {
            WordKind::Value => (Severity::Error, "does not support"),
            WordKind::Element | WordKind::Attribute => (Severity::Warning, "silently ignores"),
        };
        report
            .finding(
                word.at,
                phrase!(
                    "{user} has the {what}, which libvirt {version} {does}",
                    user = subject(context.domain, word.at),
                    what = word.what.clone(),
                    version = libvirt.to_string(),
                    does,
                ),
            )
            .span(word.span)
            .severity(severity)
            .confidence(Confidence::Assumed)
            .label(format!("since libvirt {since}"))
            .help(format!(
                "remove it, or run the guest on libvirt {since} or later"
            ));
    }
}

const fn program(component: Component) -> &'static str {
    match component {
        Component::Qemu => "QEMU",
        Component::Libvirt => "libvirt",
        Component::Kernel => "Linux",
        Component::Machine => "the machine type",
    }
}

fn report_missing(
    context: &Context<'_>,
    report: &mut Report,
    feature: &Feature,
    row: &CapabilityRow,
    basis: Basis,
    at: FieldPath,
) {
    let program = program(row.component);
    let (who, confidence) = match basis {
        Basis::Assumed(version) => (format!("{program} {version}"), Confidence::Assumed),
        Basis::Probed => {
            let version = match row.component {
                Component::Libvirt => context.target.libvirt,
                Component::Qemu | Component::Kernel | Component::Machine => context.target.qemu,
            };
            let version = version.map_or_else(String::new, |version| format!(" {version}"));
            (format!("this {program}{version}"), Confidence::Certain)
        }
    };
    let (severity, what) = match feature.without {
        Without::Refused => (Severity::Error, "does not support"),
        Without::Ignored => (Severity::Warning, "silently ignores"),
    };
    let finding = report.finding(
        at,
        phrase!(
            "{user} {does}, which {who} {what}",
            user = subject(context.domain, at),
            does = feature.does(at),
            who,
            what,
        ),
    );
    finding.severity(severity).confidence(confidence);
    let when = match (row.until, basis) {
        (Some(until), Basis::Assumed(version)) if version >= until => {
            finding.label(format!("removed in {program} {until}"));
            format!("{program} before {until}")
        }
        (None | Some(_), _) if is_too_old(context, row) => {
            finding.label(format!("since {program} {}", row.since));
            format!("{program} {} or later", row.since)
        }
        (None | Some(_), _) => {
            finding.label("not in this build");
            format!("a build of {program} that has it")
        }
    };
    let instead = feature.instead;
    finding.help(format!("{instead}, or run the guest on {when}"));
}

/// True if the version alone decides.
fn is_too_old(context: &Context<'_>, row: &CapabilityRow) -> bool {
    let version = match row.component {
        Component::Qemu => context.target.qemu,
        Component::Libvirt => context.target.libvirt,
        Component::Kernel => context.target.kernel,
        Component::Machine => context.target.machine_version(),
    };
    version.is_none_or(|version| version < row.since)
}

/// The owner of a field, as the subject of a sentence.
fn subject(domain: &Domain, at: FieldPath) -> Phrase {
    if let Some(index) = at.disk() {
        return phrase!("{disk}", disk = DiskName(index));
    }
    match at {
        FieldPath::Controller(index, _) => {
            phrase!("{controller}", controller = ControllerName(index))
        }
        FieldPath::IoThread(index, _) => match domain.iothreads.get(index) {
            Some(iothread) => phrase!("iothread {id}", id = iothread.id),
            None => format!("iothread {index}").into(),
        },
        FieldPath::ThrottleGroup(..) => "a throttle group".into(),
        _ => "the guest".into(),
    }
}
