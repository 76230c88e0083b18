//! `duplicate-value`

use crate::declare_rule;
use crate::{Evidence, Group, Severity};

declare_rule! {
    /// A setting is written twice, and only one of the two is used.
    ///
    /// ## What it reports
    /// Reports a second element where libvirt reads only one, such as two `<driver>` elements in a disk. It is an error
    /// if libvirt refuses both, for example a login in the disk and another one in its source. On a command line it
    /// reports a key that is set twice in one option, which is an error in JSON.
    ///
    /// ## Why it matters
    /// Usually libvirt uses the first element and drops the other without a message. Some, such as `<iotune>`, it joins.
    /// Readers of the file cannot see which was intended. For logins and encryption it refuses to define the
    /// guest: `an <auth> definition already found for disk source`. QEMU uses the last of two values, and refuses a key
    /// that is set twice in JSON: `JSON parse error, duplicate key`.
    ///
    /// ## Use instead
    /// Merge the two into one element, or keep one of the values, and remove the other. The fix removes the one that is
    /// not used. It is offered where that is certain: not for JSON and `id`, and not for an element that has something
    /// that the first one lacks.
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
    /// ```xml,fixed
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,serial=one,id=vda,serial=two
    /// ```
    /// ```args,fixed
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda,serial=two
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
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev '{"driver":"file","node-name":"f1","node-name":"f0","filename":"/srv/a.img"}' \
    ///   -device virtio-blk-pci,drive=f0,id=vda
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
    name: "duplicate-value",
    group: Group::Clarity,
    severity: Severity::Warning,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::refused_by_libvirt("an <auth> definition already found for disk source", "src/conf/domain_conf.c, virDomainDiskDefParseSourceXML"),
        Evidence::refused_by_libvirt("an <encryption> definition already found for disk source", "src/conf/domain_conf.c, virDomainDiskDefParseSourceXML"),
        Evidence::Source("libvirt src/conf/domain_conf.c, virDomainDiskDefParseXML: one node per name is read"),
        Evidence::Source("QEMU util/qemu-option.c, qemu_opt_get: the last value; opts_parse_id: the first `id`"),
        Evidence::refused_by_qemu("JSON parse error, duplicate key", "qobject/json-parser.c, parse_pair"),
    ],
    check: Text,
}
