//! `missing-value`

use crate::declare_rule;
use crate::{Evidence, Group, Severity};

declare_rule! {
    /// A required name, path or attribute is missing.
    ///
    /// ## What it reports
    /// Reports a disk without a target name, a source without its path or socket, and other elements without a required
    /// attribute. On command lines, reports a disk without a drive or with an empty one, and nodes and drives without a
    /// required value.
    ///
    /// ## Why it matters
    /// libvirt refuses to define the guest, for example with `missing target information for device` or
    /// `missing source information for device`, and does not name the disk. A drive without a medium is not a missing
    /// source: it has no `<source>` element at all. QEMU exits at start, for example with
    /// `Device needs media, but drive is empty`.
    ///
    /// ## Use instead
    /// Add the value that the finding names. For an empty CD or floppy drive, remove the whole `<source>` element.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target bus='virtio'/>
    /// </disk>
    /// ```
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 -drive if=none,id=d0 -device virtio-blk-pci,drive=d0,id=vda
    /// ```
    ///
    /// ```args,reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 -drive file=rbd:web1,format=raw,if=virtio
    /// ```
    /// ```args,reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=rbd,node-name=f0,image=web1 -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    /// ```args,not-reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 -drive file=rbd:vms/web1,format=raw,if=virtio
    /// ```
    /// ```args,not-reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=rbd,node-name=f0,pool=vms,image=web1 -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 -drive if=none,id=d0,media=cdrom -device ide-cd,drive=d0,id=sda
    /// ```
    /// ```xml,not-reported
    /// <disk type='file' device='cdrom'>
    ///   <driver name='qemu' type='raw'/>
    ///   <target dev='sda' bus='sata'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    name: "missing-value",
    group: Group::Startup,
    severity: Severity::Error,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::refused_by_qemu("Device needs media, but drive is empty", "hw/block/virtio-blk.c, hw/scsi/scsi-disk.c, hw/ide/qdev.c"),
        Evidence::refused_by_qemu("Pool name is required", "block/rbd.c, qemu_rbd_parse_filename"),
        Evidence::refused_by_qemu("Parameter 'pool' is missing", "qapi/block-core.json, BlockdevOptionsRbd"),
        Evidence::refused_by_libvirt("missing target information for device", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        Evidence::refused_by_libvirt("missing source information for device", "src/conf/domain_validate.c, virDomainDiskDefValidate"),
        Evidence::refused_by_libvirt("missing name for disk source", "src/conf/domain_conf.c, virDomainDiskSourceNetworkParse"),
        Evidence::refused_by_libvirt("missing name for host", "src/conf/domain_conf.c, virDomainStorageNetworkParseHost"),
        Evidence::refused_by_libvirt("missing socket for unix transport", "src/conf/domain_conf.c, virDomainStorageNetworkParseHost"),
        Evidence::refused_by_libvirt("missing offset or size attribute of slice", "src/conf/domain_conf.c, virDomainStorageSourceParseSlice"),
        Evidence::refused_by_libvirt("missing username for auth", "src/conf/storage_source_conf.c, virStorageAuthDefParse"),
        Evidence::refused_by_libvirt("Missing <secret> element in auth", "src/conf/storage_source_conf.c, virStorageAuthDefParse"),
        Evidence::refused_by_libvirt("missing secret uuid or usage attribute", "src/conf/../util/virsecret.c, virSecretLookupParseSecret"),
        Evidence::refused_by_libvirt("missing connection type for <reservations/>", "src/conf/storage_source_conf.c, virStoragePRDefParseXML"),
        Evidence::refused_by_libvirt("missing path for <reservations/>", "src/conf/storage_source_conf.c, virStoragePRDefParseXML"),
        Evidence::refused_by_libvirt("missing connection mode for <reservations/>", "src/conf/storage_source_conf.c, virStoragePRDefParseXML"),
        Evidence::refused_by_libvirt("missing disk backing store format", "src/conf/domain_conf.c, virDomainDiskBackingStoreParse"),
        Evidence::refused_by_libvirt("missing disk backing store source", "src/conf/domain_conf.c, virDomainDiskBackingStoreParse"),
        Evidence::refused_by_libvirt("missing data file store format", "src/conf/domain_conf.c, virDomainDiskDataStoreParse"),
        Evidence::refused_by_libvirt("missing disk data file store source", "src/conf/domain_conf.c, virDomainDiskDataStoreParse"),
        Evidence::refused_by_libvirt("NVMe disk source is missing address", "src/conf/domain_conf.c, virDomainDiskSourceNVMeParse"),
        Evidence::refused_by_libvirt("missing '…' attribute to disk source", "src/conf/domain_conf.c, virDomainDiskSourceNVMeParse"),
        Evidence::refused_by_libvirt("missing '…' attribute for vhostuser disk source", "src/conf/domain_conf.c, virDomainDiskSourceVHostUserParse"),
        Evidence::refused_by_libvirt("'pool' and 'volume' must be specified together for 'pool' type source", "src/conf/domain_conf.c, virDomainDiskSourcePoolDefParse"),
        Evidence::refused_by_libvirt("missing value for cookie '…'", "src/conf/storage_source_conf.c, virStorageSourceNetCookieValidate"),
        Evidence::refused_by_libvirt("ivgen element found, but cipher is missing", "src/conf/storage_encryption_conf.c, virStorageEncryptionParseNode"),
        Evidence::refused_by_libvirt("missing cookie name", "src/conf/domain_conf.c, virDomainStorageNetCookieParse"),
        Evidence::refused_by_libvirt("element '…' requires either 'keyfile' or 'agentsock' attribute", "src/conf/domain_conf.c, virDomainDiskSourceNetworkParse"),
        Evidence::refused_by_libvirt("Missing required attribute '…' in element '…'", "src/conf/../util/virxml.c, virXMLPropEnumInternal"),
    ],
    check: Text,
}
