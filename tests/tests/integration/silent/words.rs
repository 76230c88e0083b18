//! Words that not every libvirt knows.

use std::collections::BTreeSet;

use vmdisk_libvirt::vocabulary::{
    BACKING_STORE, CONTROLLER, DISK, DOMAIN, ElementSpec, Pick, SCSI_CONTROLLER, SOURCE_TYPES,
    Since, source_of,
};

use super::{IOTHREADS, PLAIN, SHARED, behind, driver, guest, source};

/// A word that not every libvirt knows: what stands around the devices, the devices with it, and what a definition that
/// kept it has.
pub(super) struct Word {
    pub(super) around: &'static str,
    pub(super) devices: &'static str,
    pub(super) kept: &'static str,
}

const fn word(around: &'static str, devices: &'static str, kept: &'static str) -> Word {
    Word {
        around,
        devices,
        kept,
    }
}

/// What came with 7.0 and later, the oldest first; what came before 9.0 shows that nothing older is called new.
pub(super) const WORDS: &[Word] = &[
    word(
        "",
        driver!(
            "",
            "<metadata_cache><max_size unit='KiB'>64</max_size></metadata_cache>"
        ),
        "<metadata_cache>",
    ),
    word(
        "",
        source!(
            "network",
            "<source protocol='nfs' name='/a'><host name='h'/><identity user='a' group='b'/></source>"
        ),
        "<identity user=",
    ),
    word(
        SHARED,
        "<disk type='vhostuser' device='disk'><source type='unix' path='/a.sock'/><target dev='vda' bus='virtio'/></disk>",
        "type='vhostuser'",
    ),
    word(
        "",
        "<disk type='file' device='disk'><source file='/a.img'/><target dev='sda' bus='sata' rotation_rate='7200'/></disk>",
        "rotation_rate=",
    ),
    word(
        "",
        behind!("<transient shareBacking='yes'/>"),
        "shareBacking=",
    ),
    word("", driver!("queue_size='256'", ""), "queue_size="),
    word("", driver!("page_per_vq='on'", ""), "page_per_vq="),
    word(
        "",
        source!(
            "network",
            "<source protocol='rbd' name='a/b'><encryption format='luks2' engine='librbd'><secret type='passphrase' uuid='0a81f5b2-8403-7b23-c8d6-21ccc2f80d6f'/></encryption></source>"
        ),
        "engine='librbd'",
    ),
    word(
        "",
        source!(
            "network",
            "<source protocol='nbd' name='a' tls='yes' tlsHostname='h'><host name='h'/></source>"
        ),
        "tlsHostname=",
    ),
    word(
        "<memoryBacking><allocation mode='immediate' threads='2'/></memoryBacking>",
        PLAIN,
        "threads='2'",
    ),
    word(
        "<iothreads>1</iothreads><iothreadids><iothread id='1' thread_pool_min='1' thread_pool_max='8'/></iothreadids>",
        PLAIN,
        "thread_pool_max=",
    ),
    word(
        "<defaultiothread thread_pool_min='1' thread_pool_max='8'/>",
        PLAIN,
        "<defaultiothread",
    ),
    word(
        "",
        source!("file", "<source file='/a.img' fdgroup='g'/>"),
        "fdgroup=",
    ),
    word(
        "",
        source!(
            "network",
            "<source protocol='nbd' name='a'><host name='h'/><reconnect delay='10'/></source>"
        ),
        "delay='10'",
    ),
    word(
        "",
        source!(
            "network",
            "<source protocol='rbd' name='a/b'><encryption format='luks-any' engine='librbd'><secret type='passphrase' uuid='0a81f5b2-8403-7b23-c8d6-21ccc2f80d6f'/></encryption></source>"
        ),
        "luks-any",
    ),
    word(
        "<iothreads>1</iothreads><iothreadids><iothread id='1'><poll max='4000'/></iothread></iothreadids>",
        PLAIN,
        "<poll max=",
    ),
    word(
        "",
        driver!("discard_no_unref='on'", ""),
        "discard_no_unref=",
    ),
    word(
        "",
        behind!("<blockio discard_granularity='65536'/>"),
        "discard_granularity=",
    ),
    word(
        SHARED,
        source!("vhostvdpa", "<source dev='/dev/vhost-vdpa-0'/>"),
        "type='vhostvdpa'",
    ),
    word(
        "",
        source!(
            "network",
            "<source protocol='ssh' name='/a'><host name='h'/><identity username='a' keyfile='/k'/></source>"
        ),
        "keyfile=",
    ),
    word(
        "",
        source!(
            "network",
            "<source protocol='ssh' name='/a'><host name='h'/><identity username='a' agentsock='/k'/></source>"
        ),
        "agentsock=",
    ),
    word(
        "",
        source!(
            "network",
            "<source protocol='ssh' name='/a'><host name='h'/><knownHosts path='/k'/></source>"
        ),
        "<knownHosts",
    ),
    word(
        IOTHREADS,
        driver!(
            "queues='2'",
            "<iothreads><iothread id='1'><queue id='0'/></iothread><iothread id='2'><queue id='1'/></iothread></iothreads>"
        ),
        "<iothread id='2'>",
    ),
    word(
        "",
        "<disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='/a.qcow2'><dataStore type='file'><format type='raw'/><source file='/a.data'/></dataStore></source><target dev='vda' bus='virtio'/></disk>",
        "<dataStore",
    ),
    word(
        "<throttlegroups><throttlegroup><group_name>g</group_name><total_iops_sec>9</total_iops_sec></throttlegroup></throttlegroups>",
        behind!("<throttlefilters><throttlefilter group='g'/></throttlefilters>"),
        "<throttlefilter ",
    ),
    word(
        IOTHREADS,
        "<controller type='scsi' index='0' model='virtio-scsi'><driver queues='2'><iothreads><iothread id='1'/><iothread id='2'/></iothreads></driver></controller>",
        "<iothread id=",
    ),
    word(
        "",
        "<controller type='sata' index='0'><serial>a</serial></controller>",
        "<serial>",
    ),
    word(
        "",
        "<controller type='nvme' index='0'><serial>a</serial></controller>",
        "type='nvme'",
    ),
    word(
        "",
        "<disk type='file' device='disk'><source file='/a.img'/><target dev='nvme0n1' bus='nvme'/></disk>",
        "bus='nvme'",
    ),
    word(
        "",
        driver!("", "<statistics><statistic interval='10'/></statistics>"),
        "<statistic ",
    ),
    word(
        "",
        "<disk type='file' device='disk'><source file='/a.img'/><target dev='sda' bus='scsi' dpofua='on'/></disk>",
        "dpofua=",
    ),
    word("", source!("ctl", "<source dev='/a'/>"), "type='ctl'"),
    word(
        "",
        "<disk type='block' device='lun'><source dev='/dev/sda'><reservations managed='yes' migration='yes'/></source><target dev='sda' bus='scsi'/></disk>",
        "migration=",
    ),
    word(
        "",
        driver!(
            "",
            "<statistics><latency-histogram type='read'><bin start='0'/></latency-histogram></statistics>"
        ),
        "<latency-histogram",
    ),
];

/// Every word of the vocabulary that came with a libvirt after this one, as readers call it.
fn words_since(oldest: Since) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let mut seen: Vec<(*const ElementSpec, Since)> = Vec::new();
    let mut open: Vec<(&'static ElementSpec, Since)> = vec![(&DOMAIN, oldest)];
    while let Some((element, around)) = open.pop() {
        if seen.contains(&(std::ptr::from_ref(element), around)) {
            continue;
        }
        seen.push((element, around));
        for attribute in element.attributes {
            let name = attribute.name;
            if attribute.since > around {
                words.insert(format!("attribute `{name}` of `<{}>`", element.name));
            }
            for (word, since, _) in attribute.versioned_syntax {
                if *since > around.max(attribute.since) {
                    words.insert(format!("value `{word}` of `{name}`"));
                }
            }
        }
        for child in element.children {
            if child.since > around {
                words.insert(format!(
                    "element `<{}>` of `<{}>`",
                    child.name, element.name
                ));
            }
            let since = child.since.max(around);
            match child.pick {
                Pick::Element(inner) => open.push((inner, since)),
                Pick::BackingStore => open.push((&BACKING_STORE, since)),
                Pick::ControllerOfType => {
                    open.extend([(&CONTROLLER, since), (&SCSI_CONTROLLER, since)])
                }
                // What stands in a source of a type is as new as the type.
                Pick::SourceOfType if std::ptr::eq(element, &DISK) => {
                    let kind = DISK.attribute("type").unwrap();
                    open.extend(
                        SOURCE_TYPES
                            .iter()
                            .map(|word| (source_of(word), kind.since_with(word).0.max(since))),
                    );
                }
                Pick::SourceOfType => {}
            }
        }
    }
    words
}

/// Words that no libvirt here can define, and the reason.
const UNTRIED: [(&str, &str); 1] = [(
    "value `loongarch64` of `arch`",
    "a definition needs an emulator of the architecture",
)];

#[test]
fn every_word_that_came_after_the_older_libvirt_is_tried() {
    let mut tried = BTreeSet::new();
    for (number, word) in WORDS.iter().enumerate() {
        let document = vmdisk_libvirt::read(&guest(number, word.around, word.devices)).unwrap();
        assert_eq!(document.problems, [], "{}", word.kept);
        tried.extend(document.versioned_syntax.into_iter().map(|word| word.what));
    }
    tried.extend(UNTRIED.map(|(word, _)| word.to_owned()));
    let missing: Vec<String> = words_since((9, 0, 0)).difference(&tried).cloned().collect();
    assert!(missing.is_empty(), "not tried: {missing:#?}");
    let documents = words_since((11, 3, 0));
    println!(
        "{} words came after libvirt 9.0; from documents only, because they came after 11.3: {documents:?}",
        words_since((9, 0, 0)).len()
    );
}
