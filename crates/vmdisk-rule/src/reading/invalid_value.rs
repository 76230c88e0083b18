//! `invalid-value`

use crate::declare_rule;
use crate::{Evidence, Group, Severity};

declare_rule! {
    /// A value is not valid for its attribute or option.
    ///
    /// ## What it reports
    /// Reports values that cannot be read: a misspelled mode, a word instead of a number, a number out of range. If a
    /// similar value is valid, the fix uses it.
    ///
    /// ## Why it matters
    /// libvirt refuses to define the guest at the first such value, for example with
    /// `Invalid value for attribute 'cache' in element 'driver': 'nonee'.`. The message names neither the line nor the
    /// disk, and schema validation points at `<devices>`. All other settings are still checked.
    ///
    /// ## Use instead
    /// Use one of the values that the finding lists.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='writebak'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='writeback'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ```args,reported,hidden
    /// qemu-system-x86_64 -machine q35 -drive file=iscsi://store.example/iqn.2003-01.example:a/,format=raw,if=virtio
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported,hidden
    /// qemu-system-x86_64 -machine q35 -drive file=iscsi://store.example/iqn.2003-01.example:a/1,format=raw,if=virtio
    /// ```
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='writeback'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "invalid-value",
    group: Group::Startup,
    severity: Severity::Error,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::refused_by_libvirt("Invalid value for attribute '…' in element '…': '…'.", "src/util/virxml.c, virXMLPropEnumInternal"),
        Evidence::refused_by_libvirt("Invalid value for attribute '…' in element '…': Zero is not permitted", "src/util/virxml.c, virXMLPropUInt"),
        Evidence::refused_by_libvirt("invalid iothreads count '…'", "src/conf/domain_conf.c, virDomainDefParseIOThreads"),
        Evidence::refused_by_libvirt("duplicate iothread id '…' found", "src/conf/domain_conf.c, virDomainDefParseIOThreads"),
        Evidence::refused_by_libvirt("disk iotune field '…' must be an integer", "src/conf/domain_conf.c, virDomainDiskDefIotuneParse"),
        Evidence::refused_by_libvirt("throttle group field '…' must be an integer", "src/conf/domain_conf.c, virDomainThrottleGroupDefParseXML"),
        Evidence::refused_by_libvirt("duplicate filter name '…' found", "src/conf/domain_conf.c, virDomainDiskThrottleFilterDefParse"),
        Evidence::refused_by_libvirt("could not parse weight", "src/conf/domain_conf.c, virDomainBlkioDeviceParseXML"),
        Evidence::refused_by_libvirt("unknown storage source type '…'", "src/conf/domain_conf.c, virDomainStorageSourceParseBase"),
        Evidence::refused_by_libvirt("unknown storage source format '…'", "src/conf/domain_conf.c, virDomainStorageSourceParseBase"),
        Evidence::refused_by_libvirt("unknown driver format value '…'", "src/conf/domain_conf.c, virDomainDiskDefDriverSourceParseXML"),
        Evidence::refused_by_libvirt("unknown protocol transport type '…'", "src/conf/domain_conf.c, virDomainStorageNetworkParseHost"),
        Evidence::refused_by_libvirt("failed to parse port number '…'", "src/util/virstring.c, virStringParsePort"),
        Evidence::refused_by_libvirt("transport '…' does not support socket attribute", "src/conf/domain_conf.c, virDomainStorageNetworkParseHost"),
        Evidence::refused_by_libvirt("malformed value '…' of '…' attribute of slice", "src/conf/domain_conf.c, virDomainStorageSourceParseSlice"),
        Evidence::refused_by_libvirt("unsupported source type '…'", "src/conf/domain_conf.c, virDomainDiskSourceNVMeParse"),
        Evidence::refused_by_libvirt("invalid '…' attribute for vhostuser disk source", "src/conf/domain_conf.c, virDomainDiskSourceVHostUserParse"),
        Evidence::refused_by_libvirt("unknown source mode '…' for volume type disk", "src/conf/domain_conf.c, virDomainDiskSourcePoolDefParse"),
        Evidence::refused_by_libvirt("unknown volume encryption format type", "src/conf/storage_encryption_conf.c, virStorageEncryptionParseNode"),
        Evidence::refused_by_libvirt("unknown volume encryption secret type", "src/conf/storage_encryption_conf.c, virStorageEncryptionSecretParse"),
        Evidence::refused_by_libvirt("unknown auth type '…'", "src/conf/storage_source_conf.c, virStorageAuthDefParseXML"),
        Evidence::refused_by_libvirt("invalid secret uuid '…'", "src/util/virsecret.c, virSecretLookupParseSecret"),
        Evidence::refused_by_libvirt("The <source> of <dataStore> can't have another nested <dataStore> or <backingStore> element", "src/conf/domain_validate.c, virDomainDiskDefValidateSourceChainOne"),
        Evidence::refused_by_libvirt("backingStore is not supported with vhostuser disk", "src/conf/domain_validate.c, virDomainDiskVhostUserValidate"),
        Evidence::refused_by_libvirt("encryption is not supported with vhostuser disk", "src/conf/domain_validate.c, virDomainDiskVhostUserValidate"),
        Evidence::refused_by_libvirt("auth is not supported with vhostuser disk", "src/conf/domain_validate.c, virDomainDiskVhostUserValidate"),
        Evidence::refused_by_libvirt("unknown memoryBacking/source/type '…'", "src/conf/domain_conf.c, virDomainMemorybackingDefParse"),
        Evidence::refused_by_libvirt("unknown memoryBacking/access/mode '…'", "src/conf/domain_conf.c, virDomainMemorybackingDefParse"),
        Evidence::refused_by_libvirt("either secret uuid or usage expected", "src/util/virsecret.c, virSecretLookupParseSecret"),
        Evidence::refused_by_libvirt("unsupported connection type for <reservations/>", "src/conf/storage_source_conf.c, virStoragePRDefParseXML"),
        Evidence::refused_by_libvirt("unsupported connection mode for <reservations/>", "src/conf/storage_source_conf.c, virStoragePRDefParseXML"),
        Evidence::refused_by_libvirt("Invalid disk read error policy: '…'", "src/conf/domain_conf.c, virDomainDiskDefDriverParseXML"),
        Evidence::refused_by_libvirt("invalid readahead size or timeout", "src/conf/domain_conf.c, virDomainDiskSourceNetworkParse"),
        Evidence::refused_by_libvirt("Cannot specify a label if relabelling is turned off", "src/conf/domain_conf.c, virSecurityDeviceLabelDefParseXML"),
        Evidence::refused_by_libvirt("label overrides require relabeling to be enabled at the domain level", "src/conf/domain_validate.c, virSecurityDeviceLabelDefValidate"),
        Evidence::refused_by_libvirt("seclabel for model … is already provided", "src/conf/domain_conf.c, virSecurityDeviceLabelDefParseXML"),
        Evidence::refused_by_libvirt("duplicate cookie '…'", "src/conf/storage_source_conf.c, virStorageSourceNetCookiesValidate"),
        Evidence::refused_by_libvirt("Unknown model type '…'", "src/conf/domain_conf.c, virDomainControllerDefParseXML"),
        Evidence::refused_by_libvirt("unsupported driver name '…' for disk '…'", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDisk"),
        Evidence::refused_by_libvirt("cookie name '…' contains invalid characters", "src/conf/storage_source_conf.c, virStorageSourceNetCookieValidate"),
        Evidence::refused_by_libvirt("value of cookie '…' contains invalid characters", "src/conf/storage_source_conf.c, virStorageSourceNetCookieValidate"),
        Evidence::refused_by_qemu("Failed to parse URL : iscsi://…", "block/iscsi.c, iscsi_parse_filename; libiscsi lib/init.c, iscsi_parse_url"),
    ],
    check: Text,
}
