//! `network-host-count-refused`

use vmdisk_model::{FieldPath, ImageField, NetworkProtocol, Protocol};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity, TakenBy};

declare_rule! {
    /// A source on the network names no server, or more of them than the protocol has.
    ///
    /// ## What it does
    /// Reports sources on nbd, iscsi, ssh, vxhs, http, https, ftp and ftps without exactly one `<host>`, in XML for
    /// libvirt. rbd finds its servers in its own configuration, and gluster may have several.
    ///
    /// ## Why it matters
    /// libvirt takes the definition, and refuses to start the guest.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='iscsi' name='iqn.2013-07.com.example:disks/1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='iscsi' name='iqn.2013-07.com.example:disks/1'>
    ///     <host name='store.example' port='3260'/>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source protocol='rbd' name='pool/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "network-host-count-refused",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "define succeeds, and domxml-to-native says `nbd protocol accepts only one host`, `protocol 'https' accepts only one host`; for iscsi 11.3 says so, 9.0 takes the first of several and crashes without one",
                how: "virsh of libvirt 9.0 and 11.3, tests/tests/integration/silent.rs",
            },
            Evidence::Source("libvirt src/qemu/qemu_block.c, qemuBlockStorageSourceGetISCSIProps, -GetNBDProps, -GetSshProps, -GetVxHSProps and -GetURI"),
        ],
        supersedes: &[],
        check: check,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    // A command line names the server in the node's own words.
    if context.taken_by == TakenBy::Qemu {
        return;
    }
    for (index, disk, top) in context.images() {
        for (depth, image) in top.chain().enumerate() {
            let Protocol::Network(network) = &image.protocol else {
                continue;
            };
            let (protocol, count) = (network.protocol, network.hosts.len());
            if count == 1 || !has_one_host(protocol) {
                continue;
            }
            let (field, has) = match count {
                0 => (ImageField::Source, "no server".to_owned()),
                _ => (ImageField::Hosts, format!("{count} servers")),
            };
            // libvirt 9.0 has no such check for iSCSI.
            let is_taken = protocol == NetworkProtocol::Iscsi && count > 1;
            let (severity, label) = if is_taken {
                let label = "libvirt 9.0 takes the first, 11.3 does not start the guest";
                (Severity::Warning, label)
            } else {
                (Severity::Error, "libvirt does not start the guest")
            };
            report
                .finding(
                    FieldPath::Image(index, depth, field),
                    format!(
                        "`{}` names {has}, and {protocol} has exactly one",
                        disk.name()
                    ),
                )
                .severity(severity)
                .label(label)
                .help("write one <host name='…'/>");
        }
    }
}

const fn has_one_host(protocol: NetworkProtocol) -> bool {
    match protocol {
        NetworkProtocol::Nbd
        | NetworkProtocol::Iscsi
        | NetworkProtocol::Ssh
        | NetworkProtocol::Vxhs
        | NetworkProtocol::Http
        | NetworkProtocol::Https
        | NetworkProtocol::Ftp
        | NetworkProtocol::Ftps => true,
        // Refused at the definition already, by any name or for their count.
        NetworkProtocol::Sheepdog | NetworkProtocol::Tftp | NetworkProtocol::Nfs => false,
        NetworkProtocol::Rbd | NetworkProtocol::Gluster => false,
    }
}
