//! The five articles the project began from: their configurations, their hosts, and what is found.

use vmdisk_tests::{assert_golden, fixtures, repository, run};

#[test]
fn each_article_is_linted_as_its_golden_file_says() {
    let mut folders: Vec<_> = std::fs::read_dir(fixtures().join("articles"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    assert_eq!(folders.len(), 5, "there are five articles");
    for folder in folders {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let file = |file: &str| format!("fixtures/articles/{name}/{file}");
        let found = run(
            crate::VMDISK,
            &["lint", &file("domain.xml"), "--facts", &file("facts.json")],
            "",
        );
        assert!(
            found.stdout.contains(" = "),
            "{name} has findings: {found:?}"
        );
        assert_golden(
            &folder.join("findings.txt"),
            &format!("{}{}", found.stdout, found.stderr),
        );
    }
}

/// The page with the comparisons of the articles.
fn page() -> String {
    std::fs::read_to_string(repository().join("docs/articles.md")).unwrap()
}

/// What the articles compare, and the command of the page that answers it, or its words about why none does.
const COMPARISONS: [(&str, &str); 27] = [
    (
        "cache modes during an installation",
        "bench run cache-modes --directory /srv/btrfs",
    ),
    (
        "raw speed of the host against it",
        "five-backends --workload 1m-sequential-read-qd8",
    ),
    ("before and after all tweaks", "bench run crystaldiskmark"),
    (
        "a logical volume and qcow2",
        "a logical volume is faster than a file",
    ),
    ("a thin and a thick volume", "--pairs=thin-volume:volume"),
    (
        "chunks of 64 KiB and 4 MiB, zeroing",
        "bench run thin-chunk --group vg0",
    ),
    ("extents of a volume group", "| extents of a volume group |"),
    ("read-ahead", "| read-ahead of a volume |"),
    (
        "vCPUs",
        "More vCPUs than processors would measure the scheduler",
    ),
    ("huge pages", "bench run huge-pages"),
    ("an iothread", "bench run iothread-queues"),
    (
        "virtio-blk and virtio-scsi",
        "matrix: {frontend: [virtio-blk, virtio-scsi]}",
    ),
    (
        "vhost-user-blk and a tuned disk",
        "--pairs=vhost-user-blk:tuned",
    ),
    ("SPDK", "`--destroy-data-behind SOCKET`"),
    ("vhost-user-nvme", "| vhost-user-nvme |"),
    (
        "hdparm -t of existing disks",
        "bench read /dev/sda /dev/nvme0n1 --buffered",
    ),
    ("buffered and O_DIRECT", "bench run buffered"),
    ("schedulers", "bench run schedulers"),
    (
        "TRIM and an aged SSD",
        "| before and after TRIM, and an aged SSD |",
    ),
    (
        "file size by record size",
        "| file size by record size, as a surface |",
    ),
    ("O_SYNC", "| `O_SYNC` |"),
    (
        "gzip, compilers, MySQL, kernels",
        "| gzip, compilers, MySQL, kernels |",
    ),
    (
        "ext4 and btrfs on volumes",
        "| ext4 and btrfs on volumes of one group |",
    ),
    ("mirrors", "bench run raid1-read"),
    ("which mirror worked", "| which disk of a mirror worked |"),
    ("threads and native", "--pairs=io-native:threads"),
    ("raw, qcow2 and preallocation", "bench run preallocation"),
];

#[test]
fn each_comparison_of_the_articles_has_a_command_or_a_reason() {
    let page = page();
    for (comparison, answer) in COMPARISONS {
        assert!(page.contains(answer), "{comparison}: {answer}");
    }
}

/// The commands that measure, in blocks and in tables, without comments.
fn measuring(page: &str) -> Vec<String> {
    let lines = page
        .lines()
        .flat_map(|line| match line.starts_with("vmdisk bench ") {
            true => vec![line],
            false => line.split('`').skip(1).step_by(2).collect(),
        });
    let is_measuring = |text: &&str| {
        text.starts_with("vmdisk bench run ") || text.starts_with("vmdisk bench read ")
    };
    let commands = lines.filter(is_measuring);
    let commands = commands.map(|text| text.split('#').next().unwrap_or(text).trim().to_owned());
    commands.collect()
}

#[test]
fn each_command_of_the_page_plans_its_run_here_or_says_what_is_missing() {
    let place = tempfile::tempdir().unwrap();
    let commands = measuring(&page());
    assert!(commands.len() > 12, "{commands:?}");
    for name in ["sda", "nvme0n1"] {
        std::fs::write(place.path().join(name), vec![1; 4 << 20]).unwrap();
    }
    for command in commands {
        // The devices of the page are files of this test, and its directories are one.
        let words = command
            .replace("/srv/md", ".")
            .replace("/dev/disk/by-id/…", "/dev/disk/by-id/none")
            .replace("--confirm-serial …", "--confirm-serial none")
            .replace("/dev/sda", "sda")
            .replace("/dev/nvme0n1", "nvme0n1");
        let mut words: Vec<&str> = words.split(' ').skip(1).collect();
        for word in &mut words {
            if word.starts_with("/srv/") {
                *word = "/";
            }
        }
        let is_read = words[1] == "read";
        let ending = match is_read {
            true => &[
                "--rounds",
                "1",
                "--seconds",
                "0.1",
                "--noisy",
                "--no-warm-up",
                "-o",
                "out",
            ][..],
            false => &["--dry-run"],
        };
        words.extend(ending);
        if is_read && !vmdisk_tests::has_program("fio") {
            continue;
        }
        let run = vmdisk_tests::run_in(place.path(), crate::VMDISK, &words, "");
        let is_usage = run.stderr.contains("Usage:");
        assert!(
            !is_usage && !run.stderr.contains("internal"),
            "{command}: {run:?}"
        );
        let is_planned = run.stdout.contains("rounds, about") || run.stdout.contains(" round,");
        let is_refused = run.code == 2 && run.stderr.contains("error: ");
        assert!(is_planned || is_refused, "{command}: {run:?}");
        assert!(
            is_planned || !run.stderr.contains("no such"),
            "{command}: {run:?}"
        );
        println!(
            "{command}: {}",
            if is_refused {
                "refused with the reason"
            } else {
                "planned"
            }
        );
    }
}
