//! `duplicate-value`

use crate::declare_rule;
use crate::{Evidence, Group, Severity};

declare_rule! {
    /// The same thing is written twice, and only one of the two counts.
    ///
    /// ## What it does
    /// Reports a second element where libvirt reads only one, such as two `<driver>` elements in a disk. Where libvirt
    /// refuses the two, as it does a login in the disk and another in its source, that is an error.
    ///
    /// ## Why it matters
    /// libvirt takes one and drops the other without a word; which one differs from element to element. A
    /// reader cannot tell which was meant.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <driver name='qemu' type='raw' cache='writeback'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// An error:
    /// ```xml,reported
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <auth username='fred'>
    ///     <secret type='iscsi' usage='key'/>
    ///   </auth>
    ///   <source protocol='iscsi' name='iqn.2013-07.com.example:disks/1'>
    ///     <host name='store.example' port='3260'/>
    ///     <auth username='fred'>
    ///       <secret type='iscsi' usage='key'/>
    ///     </auth>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ```xml,reported
    /// <disk type='network' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <auth username='fred'>
    ///     <secret type='iscsi' usage='key'/>
    ///   </auth>
    ///   <source protocol='iscsi' name='iqn.2013-07.com.example:disks/1'>
    ///     <host name='store.example' port='3260'/>
    ///     <auth username='fred'>
    ///       <secret type='iscsi' usage='key'/>
    ///     </auth>
    ///   </source>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub static RULE = {
        name: "duplicate-value",
        group: Group::Clarity,
        severity: Severity::Warning,
        since: "0.1.0",
        is_about_text: true,
        evidence: &[
            Evidence::refused_by_libvirt("an <auth> definition already found for disk source", "src/conf/domain_conf.c, virDomainDiskDefParseSourceXML"),
            Evidence::refused_by_libvirt("an <encryption> definition already found for disk source", "src/conf/domain_conf.c, virDomainDiskDefParseSourceXML"),
            Evidence::Source("libvirt src/conf/domain_conf.c, virDomainDiskDefParseXML: one node per name is read"),
        ],
        supersedes: &[],
        check: Text,
    }
}
