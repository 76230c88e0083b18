//! `thread-pool-refused`

use vmdisk_fields::phrase;
use vmdisk_model::{FieldPath, IoThreadField};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// The thread pool of an iothread has a minimum size above its maximum.
    ///
    /// ## What it reports
    /// Reports iothreads whose thread pool has a larger minimum (`thread_pool_min`, `thread-pool-min`) than maximum,
    /// and those with the maximum 0. An unset maximum is 64.
    ///
    /// ## Why it matters
    /// libvirt refuses the guest if both are written, or the maximum is 0; QEMU does not start.
    ///
    /// ## Use instead
    /// Set the maximum to at least the minimum, and to at least 1, or remove both: the pool then grows and shrinks as
    /// needed.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <iothreads>1</iothreads>
    ///   <iothreadids>
    ///     <iothread id='1' thread_pool_min='16' thread_pool_max='8'/>
    ///   </iothreadids>
    ///   <devices/>
    /// </domain>
    /// ```
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -object iothread,id=iothread1,thread-pool-min=16,thread-pool-max=8 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda,iothread=iothread1
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -object iothread,id=iothread1,thread-pool-min=8,thread-pool-max=16 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda,iothread=iothread1
    /// ```
    /// ```xml,reported,hidden
    /// <domain type='kvm'>
    ///   <name>a</name>
    ///   <iothreads>1</iothreads>
    ///   <iothreadids><iothread id='1' thread_pool_max='0'/></iothreadids>
    ///   <devices>
    ///   </devices>
    /// </domain>
    /// ```
    name: "thread-pool-refused",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_libvirt("thread_pool_max must be a positive integer", "src/conf/domain_validate.c, virDomainDefValidateIOThreadsThreadPool"),
        Evidence::refused_by_libvirt("thread_pool_min must be smaller or equal to thread_pool_max", "src/conf/domain_validate.c, virDomainDefValidateIOThreadsThreadPool"),
        Evidence::refused_by_qemu("bad thread-pool-min/thread-pool-max values", "util/async.c, aio_context_set_thread_pool_params (7.2)"),
    ],
    check: Model(check),
}

/// QEMU's default for the maximum size of a pool.
const DEFAULT_MAX: u32 = 64;

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, thread) in context.domain.iothreads.iter().enumerate() {
        let min = thread.thread_pool_min.unwrap_or(0);
        let max = thread.thread_pool_max.unwrap_or(DEFAULT_MAX);
        if min <= max && max > 0 {
            continue;
        }
        let title = if max == 0 {
            phrase!(
                "the thread pool of iothread {thread} has a maximum of 0 threads",
                thread = thread.id
            )
        } else {
            phrase!(
                "the thread pool of iothread {thread} has a minimum of {min} threads, but a maximum of {max}",
                thread = thread.id,
                min,
                max,
            )
        };
        let finding = report.finding(FieldPath::IoThread(index, IoThreadField::IoThread), title);
        finding.label("QEMU refuses it");
        if thread.thread_pool_max.is_none() {
            finding.note(phrase!("the default maximum is {max}", max));
        }
        finding.help(if max == 0 {
            phrase!("use a maximum of at least {least}", least = min.max(1))
        } else {
            phrase!(
                "use a minimum of at most {max}, or a maximum of at least {min}",
                max,
                min
            )
        });
    }
}
