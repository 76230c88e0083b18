//! `thread-pool-refused`

use vmdisk_model::{FieldPath, IoThreadField};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// The thread pool of an iothread has limits that exclude each other.
    ///
    /// ## What it does
    /// Reports iothreads whose pool has more threads at least than at most, which are 64 where that is not written,
    /// or none at most.
    ///
    /// ## Why it matters
    /// QEMU does not start.
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
    pub(super) static RULE = {
        name: "thread-pool-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::refused_by_libvirt("thread_pool_max must be a positive integer", "src/conf/domain_validate.c, virDomainDefValidateIOThreadsThreadPool"),
            Evidence::refused_by_libvirt("thread_pool_min must be smaller or equal to thread_pool_max", "src/conf/domain_validate.c, virDomainDefValidateIOThreadsThreadPool"),
            Evidence::Refused {
                by: "QEMU",
                text: "bad thread-pool-min/thread-pool-max values",
                source: "util/async.c, aio_context_set_thread_pool_params (7.2)",
            },
        ],
        supersedes: &[],
        check: Model(check),
    }
}

/// Most threads of a pool where nobody says so.
const MOST: u32 = 64;

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, thread) in context.domain.iothreads.iter().enumerate() {
        let (least, most) = (
            thread.thread_pool_min.unwrap_or(0),
            thread.thread_pool_max.unwrap_or(MOST),
        );
        if least <= most && most > 0 {
            continue;
        }
        report
            .finding(
                FieldPath::IoThread(index, IoThreadField::IoThread),
                format!(
                    "the pool of iothread {} has {least} threads at least and {most} at most",
                    thread.id
                ),
            )
            .label("QEMU refuses it")
            .help(format!(
                "write at most {most} for the least, or at least {} for the most",
                least.max(1)
            ));
    }
}
