//! Properties of devices: sizes, queues, threads, names.

use crate::row::{Refusing, Row, row, silent, try_rows, try_rows_since};
use vmdisk::facts::Version;

const NODE: &str = "-blockdev driver=file,node-name=f0,filename={a.raw}";

/// Rows on one node, whose options stand in front of theirs.
fn on_a_node(rows: &[Row]) -> Vec<Row> {
    let full = |options: &'static str| -> &'static str {
        if options.is_empty() {
            return options;
        }
        Box::leak(format!("{options} {NODE}").into_boxed_str())
    };
    rows.iter()
        .map(|row| Row {
            refused: full(row.refused),
            mended: full(row.mended),
            ..*row
        })
        .collect()
}

#[test]
fn devices_that_qemu_refuses_are_reported() {
    const POWER: &str = "doesn't take value|must be a power of 2";
    const SIZE: &str = "block-size-refused";
    const QUEUE: &str = "queue-size-refused";
    const COUNT: &str = "queue-count-refused";
    const GONE: &str = "property-refused";
    let rows = [
        row(SIZE, "-device virtio-blk-pci,drive=f0,id=vda,logical_block_size=100,physical_block_size=512", POWER, "-device virtio-blk-pci,drive=f0,id=vda,logical_block_size=512,physical_block_size=512"),
        row(SIZE, "-device virtio-blk-pci,drive=f0,id=vda,logical_block_size=1000,physical_block_size=1024", POWER, ""),
        row(SIZE, "-device virtio-blk-pci,drive=f0,id=vda,physical_block_size=4194304", POWER, ""),
        row(SIZE, "-device virtio-blk-pci,drive=f0,id=vda,logical_block_size=4096", "logical_block_size > physical_block_size not supported", "-device virtio-blk-pci,drive=f0,id=vda,logical_block_size=4096,physical_block_size=4096"),
        row(SIZE, "-device nvme,drive=f0,id=n0,serial=a,logical_block_size=4096", "logical_block_size > physical_block_size not supported", "-device nvme,drive=f0,id=n0,serial=a,logical_block_size=4096,physical_block_size=4096"),
        row(SIZE, "-device virtio-blk-pci,drive=f0,id=vda,min_io_size=1000", "min_io_size must be a multiple of logical_block_size", "-device virtio-blk-pci,drive=f0,id=vda,min_io_size=1024"),
        row(SIZE, "-device virtio-blk-pci,drive=f0,id=vda,min_io_size=67108864", "min_io_size must not exceed 65535 logical blocks", ""),
        row(SIZE, "-device virtio-blk-pci,drive=f0,id=vda,opt_io_size=1000", "opt_io_size must be a multiple of logical_block_size", "-device virtio-blk-pci,drive=f0,id=vda,opt_io_size=1M"),
        row(SIZE, "-device virtio-blk-pci,drive=f0,id=vda,discard_granularity=1000", "discard_granularity must be a multiple of logical_block_size", "-device virtio-blk-pci,drive=f0,id=vda,discard_granularity=65536"),
        row(SIZE, "-device ide-hd,drive=f0,id=sda,bus=ide.0,logical_block_size=4096,physical_block_size=4096", "discard_granularity must be", "-device ide-hd,drive=f0,id=sda,bus=ide.0,physical_block_size=4096"),
        row(SIZE, "-device ide-hd,drive=f0,id=sda,bus=ide.0,discard_granularity=4096", "discard_granularity must be 512 for ide", "-device ide-hd,drive=f0,id=sda,bus=ide.0,discard_granularity=512"),
        row(QUEUE, "-device virtio-blk-pci,drive=f0,id=vda,queue-size=2", "must be > 2", "-device virtio-blk-pci,drive=f0,id=vda,queue-size=4"),
        row(QUEUE, "-device virtio-blk-pci,drive=f0,id=vda,queue-size=1000", "must be a power of 2 (max 1024)", "-device virtio-blk-pci,drive=f0,id=vda,queue-size=1024"),
        row(QUEUE, "-device virtio-blk-pci,drive=f0,id=vda,queue-size=2048", "must be a power of 2 (max 1024)", ""),
        row(QUEUE, "-device virtio-scsi-pci,id=s0,virtqueue_size=2 -device scsi-hd,drive=f0,bus=s0.0", "must be > 2", "-device virtio-scsi-pci,id=s0,virtqueue_size=4 -device scsi-hd,drive=f0,bus=s0.0"),
        // These two end with SIGABRT and nothing on standard error.
        row(QUEUE, "-device virtio-scsi-pci,id=s0,virtqueue_size=2048 -device scsi-hd,drive=f0,bus=s0.0", "signal: 6", "-device virtio-scsi-pci,id=s0,virtqueue_size=1024 -device scsi-hd,drive=f0,bus=s0.0"),
        row(COUNT, "-device virtio-blk-pci,drive=f0,id=vda,num-queues=1025", "signal: 6", "-device virtio-blk-pci,drive=f0,id=vda,num-queues=1024"),
        row(COUNT, "-device virtio-blk-pci,drive=f0,id=vda,num-queues=0", "num-queues property must be larger than 0", "-device virtio-blk-pci,drive=f0,id=vda,num-queues=65535"),
        row(COUNT, "-device virtio-scsi-pci,id=s0,num_queues=0 -device scsi-hd,drive=f0,bus=s0.0", "Invalid number of queues", "-device virtio-scsi-pci,id=s0,num_queues=1022 -device scsi-hd,drive=f0,bus=s0.0"),
        row(COUNT, "-device virtio-scsi-pci,id=s0,num_queues=1025 -device scsi-hd,drive=f0,bus=s0.0", "Invalid number of queues", ""),
        row("invalid-value", "-device virtio-blk-pci,drive=f0,id=vda,max-discard-sectors=0", "invalid max-discard-sectors property (0), must be between 1 and 4194303", "-device virtio-blk-pci,drive=f0,id=vda,max-discard-sectors=8"),
        row("iothread-without-ioeventfd", "-object iothread,id=io0 -device virtio-blk-pci,drive=f0,id=vda,iothread=io0,ioeventfd=off", "ioeventfd is required for iothread", "-object iothread,id=io0 -device virtio-blk-pci,drive=f0,id=vda,iothread=io0"),
        row("iothread-without-ioeventfd", "-object iothread,id=io0 -device virtio-scsi-pci,id=s0,iothread=io0,ioeventfd=off -device scsi-hd,drive=f0,bus=s0.0", "ioeventfd is required for iothread", ""),
        row("iothread-undefined", "-device virtio-blk-pci,drive=f0,id=vda,iothread=nope", "Device 'nope' not found", ""),
        row(GONE, "-object iothread,id=io0 -device ide-hd,drive=f0,id=sda,bus=ide.0,iothread=io0", "Property 'ide-hd.iothread' not found", "-device ide-hd,drive=f0,id=sda,bus=ide.0"),
        row(GONE, "-device virtio-blk-pci,drive=f0,id=vda,rotation_rate=1", "Property 'virtio-blk-pci.rotation_rate' not found", ""),
        row(GONE, "-device virtio-scsi-pci,id=s0,num-queues=4 -device scsi-hd,drive=f0,bus=s0.0", "num-queues' not found", "-device virtio-scsi-pci,id=s0,num_queues=4 -device scsi-hd,drive=f0,bus=s0.0"),
        row(GONE, "-device virtio-scsi-pci,id=s0 -device scsi-hd,drive=f0,bus=s0.0,wwn=naa.5000c50015ea71aa", "Parameter 'wwn' expects", "-device virtio-scsi-pci,id=s0 -device scsi-hd,drive=f0,bus=s0.0,wwn=0x5000c50015ea71aa"),
        row(GONE, "-device virtio-blk-pci,drive=f0,id=vda,scsi=on", "scsi", ""),
        row(GONE, "-object iothread,id=io0 -device virtio-blk-pci,drive=f0,id=vda,iothread-vq-mapping.0.iothread=io0", "iothread-vq-mapping", "-object iothread,id=io0 -device virtio-blk-pci,drive=f0,id=vda,iothread=io0"),
        row("thread-pool-refused", "-object iothread,id=io0,thread-pool-min=8,thread-pool-max=4 -device virtio-blk-pci,drive=f0,id=vda,iothread=io0", "thread-pool", ""),
        row("invalid-value", "-object iothread,id=io0,poll-max-ns=-1 -device virtio-blk-pci,drive=f0,id=vda,iothread=io0", "poll-max-ns value must be in range", "-object iothread,id=io0,poll-max-ns=0 -device virtio-blk-pci,drive=f0,id=vda,iothread=io0"),
        row("read-only-ide-disk", "-blockdev driver=file,node-name=r0,filename={b.raw},read-only=on -device ide-hd,drive=r0,id=sda,bus=ide.0 -device virtio-blk-pci,drive=f0,id=vda", "Block node is read-only", "-blockdev driver=file,node-name=r0,filename={b.raw},read-only=on -device virtio-blk-pci,drive=r0,id=vdb -device virtio-blk-pci,drive=f0,id=vda"),
        row("serial-too-long", "-device virtio-scsi-pci,id=s0 -device scsi-hd,drive=f0,bus=s0.0,serial=1234567890123456789012345678901234567,device_id=a", "can't be longer than 36 characters", "-device virtio-scsi-pci,id=s0 -device scsi-hd,drive=f0,bus=s0.0,serial=123456789012345678901234567890123456,device_id=a").by(Refusing::Since(Version(10, 0, 0))),
        row("serial-too-long", "-device virtio-scsi-pci,id=s0 -device scsi-hd,drive=f0,bus=s0.0,serial=123456789012345678901", "can't be longer than 20 characters", "-device virtio-scsi-pci,id=s0 -device scsi-hd,drive=f0,bus=s0.0,serial=12345678901234567890").by(Refusing::Since(Version(10, 0, 0))),
        row("serial-too-long", "-device nvme,drive=f0,id=n0,serial=123456789012345678901", "at most '20' characters", "-device nvme,drive=f0,id=n0,serial=12345678901234567890").by(Refusing::Since(Version(11, 1, 0))),
        row("missing-value", "-device nvme,drive=f0,id=n0", "serial property not set", "-device nvme,drive=f0,id=n0,serial=a"),
        row("invalid-value", "-device nvme,drive=f0,id=n0,serial=a,max_ioqpairs=0", "max_ioqpairs must be between 1 and 65535", "-device nvme,drive=f0,id=n0,serial=a,max_ioqpairs=4"),
        row("nvme-transfer-size-refused", "-device nvme,drive=f0,id=n0,serial=a,mdts=12", "mdts exceeds IOV_MAX", "-device nvme,drive=f0,id=n0,serial=a,mdts=9").by(Refusing::Since(Version(10, 0, 13))),
        row("nvme-transfer-size-refused", "-device nvme,drive=f0,id=n0,serial=a,mdts=10", "mdts exceeds IOV_MAX", "").by(Refusing::Since(Version(10, 0, 13))),
        row("node-on-two-iothreads", "-object iothread,id=io0 -object iothread,id=io1 -device virtio-scsi-pci,id=s0,iothread=io0 -device virtio-scsi-pci,id=s1,iothread=io1 -device scsi-hd,drive=f0,bus=s0.0,share-rw=on -device scsi-hd,drive=f0,bus=s1.0,share-rw=on", "Cannot change iothread of active block backend", "-object iothread,id=io0 -device virtio-scsi-pci,id=s0,iothread=io0 -device virtio-scsi-pci,id=s1,iothread=io0 -device scsi-hd,drive=f0,bus=s0.0,share-rw=on -device scsi-hd,drive=f0,bus=s1.0,share-rw=on").by(Refusing::Before(Version(10, 0, 0))),
        row("node-on-two-iothreads", "-object iothread,id=io0 -device virtio-scsi-pci,id=s0,iothread=io0 -device virtio-scsi-pci,id=s1 -device scsi-hd,drive=f0,bus=s0.0,share-rw=on -device scsi-hd,drive=f0,bus=s1.0,share-rw=on", "Cannot change iothread of active block backend", "").by(Refusing::Before(Version(10, 0, 0))),
        row("queue-size-refused", "-chardev null,id=c0 -device vhost-user-blk-pci,chardev=c0,id=vdb,queue-size=2048 -device virtio-blk-pci,drive=f0,id=vda", "queue size must not exceed 1024|signal: 6", ""),
        row("queue-count-refused", "-chardev null,id=c0 -device vhost-user-blk-pci,chardev=c0,id=vdb,num-queues=0 -device virtio-blk-pci,drive=f0,id=vda", "invalid number of IO queues", ""),
        row("queue-count-refused", "-chardev null,id=c0 -device vhost-user-blk-pci,chardev=c0,id=vdb,num-queues=1025 -device virtio-blk-pci,drive=f0,id=vda", "invalid number of IO queues", ""),
        row("missing-value", "-device virtio-blk-pci", "drive property not set", ""),
        row("lun-refused", "-device virtio-scsi-pci,id=s0 -device scsi-block,drive=f0,bus=s0.0", "Is this a SCSI device?", "-device virtio-scsi-pci,id=s0 -device scsi-hd,drive=f0,bus=s0.0"),
        row("lun-refused", "-device virtio-scsi-pci,id=s0 -device scsi-generic,drive=f0,bus=s0.0", "Is this a SCSI device?", ""),
        row("lun-refused", "-blockdev driver=qcow2,node-name=q0,file.driver=file,file.filename={a.qcow2} -device virtio-scsi-pci,id=s0 -device scsi-block,drive=q0,bus=s0.0", "Is this a SCSI device?", ""),
        row("missing-value", "-device vhost-user-blk-pci,id=vda -device virtio-blk-pci,drive=f0,id=vdb", "chardev is mandatory", ""),
        row("boot-order-twice", "-blockdev driver=file,node-name=f1,filename={b.raw} -device virtio-blk-pci,drive=f1,id=vdb,bootindex=1 -device virtio-blk-pci,drive=f0,id=vda,bootindex=1", "The bootindex 1 has already been used", "-blockdev driver=file,node-name=f1,filename={b.raw} -device virtio-blk-pci,drive=f1,id=vdb,bootindex=1 -device virtio-blk-pci,drive=f0,id=vda,bootindex=2"),
        row("memory-size-mismatch", "-machine q35,memory-backend=m0 -m 128 -object memory-backend-memfd,id=m0,size=64M,share=on -device virtio-blk-pci,drive=f0,id=vda", "must match size of explicitly specified|Machine memory size does not match", "-machine q35,memory-backend=m0 -m 128 -object memory-backend-memfd,id=m0,size=128M,share=on -device virtio-blk-pci,drive=f0,id=vda"),
    ];
    try_rows("devices", &on_a_node(&rows));
}

#[test]
fn mappings_of_queues_that_qemu_refuses_are_reported() {
    const RULE: &str = "iothread-mapping-refused";
    const THREADS: &str = "-object iothread,id=io0 -object iothread,id=io1";
    let device = |members: &str| -> &'static str {
        let device = format!(r#"{{"driver":"virtio-blk-pci","id":"vda","drive":"f0",{members}}}"#);
        Box::leak(format!("{THREADS} -device '{device}'").into_boxed_str())
    };
    let good = device(
        r#""num-queues":4,"iothread-vq-mapping":[{"iothread":"io0","vqs":[0,1]},{"iothread":"io1","vqs":[2,3]}]"#,
    );
    let rows: Vec<Row> = [
        (r#""num-queues":4,"iothread-vq-mapping":[{"iothread":"io0","vqs":[0,1]},{"iothread":"io1","vqs":[1,2,3]}]"#, "because it is already assigned"),
        (r#""num-queues":4,"iothread-vq-mapping":[{"iothread":"io0","vqs":[0]},{"iothread":"io1","vqs":[2,3]}]"#, "missing vq 1 IOThread assignment"),
        (r#""num-queues":4,"iothread-vq-mapping":[{"iothread":"io0","vqs":[0,1,2,3,4]}]"#, "must be less than num_queues 4"),
        (r#""num-queues":4,"iothread-vq-mapping":[{"iothread":"io0","vqs":[0,1,2,3]},{"iothread":"io1"}]"#, "must have vqs or none of them must have it"),
        (r#""num-queues":4,"iothread-vq-mapping":[{"iothread":"io0"},{"iothread":"io0"}]"#, "duplicate IOThread name"),
        (r#""iothread":"io1","iothread-vq-mapping":[{"iothread":"io0"}]"#, "properties cannot be set at the same time"),
    ]
    .into_iter()
    .map(|(members, says)| Row {
        rule: RULE,
        refused: device(members),
        // A version that does not know the property refuses every mapping, and so what is to be written instead.
        says: Box::leak(format!("{says}|is not a valid device model name|Property 'virtio-blk-pci.iothread-vq-mapping' not found").into_boxed_str()),
        by: Refusing::All,
        mended: "",
    })
    .collect();
    try_rows("mappings", &on_a_node(&rows));
    let fine = Row {
        rule: RULE,
        refused: good,
        says: "is not a valid device model name|not found",
        by: Refusing::Before(Version(9, 0, 0)),
        mended: "",
    };
    // Another device, and a thread that nobody makes.
    let scsi = |members: &str| -> &'static str {
        Box::leak(format!(r#"{THREADS} -device '{{"driver":"virtio-scsi-pci","id":"s0",{members}}}' -device '{{"driver":"scsi-hd","drive":"f0","bus":"s0.0"}}'"#).into_boxed_str())
    };
    let newer = [
        row(
            "iothread-undefined",
            device(r#""iothread-vq-mapping":[{"iothread":"nope"}]"#),
            "object does not exist",
            device(r#""iothread-vq-mapping":[{"iothread":"io0"}]"#),
        ),
        silent(
            RULE,
            device(r#""iothread-vq-mapping":[]"#),
            device(r#""iothread-vq-mapping":[{"iothread":"io0"}]"#),
        ),
        silent(
            RULE,
            device(
                r#""num-queues":1,"iothread-vq-mapping":[{"iothread":"io0"},{"iothread":"io1"}]"#,
            ),
            "",
        ),
    ];
    try_rows_since("mappings", Version(9, 0, 0), &on_a_node(&newer));
    // Devices in JSON are made behind those that are not, wherever they stand.
    const LATE: &str =
        r#"-device '{"driver":"virtio-scsi-pci","id":"s0"}' -device scsi-hd,drive=f0,bus=s0.0"#;
    const ALIKE: &str = r#"-device '{"driver":"virtio-scsi-pci","id":"s0"}' -device '{"driver":"scsi-hd","drive":"f0","bus":"s0.0"}'"#;
    let mixed = [row("bus-missing", LATE, "Bus 's0.0' not found", ALIKE)];
    try_rows_since("mixed syntax", Version(6, 2, 0), &on_a_node(&mixed));
    let newest = [
        row(
            RULE,
            scsi(r#""num_queues":2,"iothread-vq-mapping":[{"iothread":"io0"},{"iothread":"io0"}]"#),
            "duplicate IOThread name",
            scsi(r#""num_queues":2,"iothread-vq-mapping":[{"iothread":"io0"},{"iothread":"io1"}]"#),
        ),
        row(
            RULE,
            scsi(r#""iothread":"io1","iothread-vq-mapping":[{"iothread":"io0"}]"#),
            "properties cannot be set at the same time",
            "",
        ),
    ];
    try_rows_since("mappings", Version(10, 0, 0), &on_a_node(&newest));
    // The rule has nothing against it: which versions have the property is another's business.
    let builds = vmdisk_tests::qemus("mappings");
    for qemu in builds
        .iter()
        .filter(|qemu| qemu.version >= Version(9, 0, 0))
    {
        crate::row::accepts(qemu, &on_a_node(&[fine])[0]);
    }
}
