//! Speed of reading, linting and emitting. Compare runs of one machine only.
#![allow(missing_docs, reason = "criterion's macros make the functions")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rayon::prelude::*;
use vmdisk::model::{
    Architecture, CacheMode, Disk, Domain, Format, Frontend, Image, MachineType, TargetBus,
};
use vmdisk::{FixScope, LintOptions, fix, lint, read, resolve, write};

fn fleet(count: u32) -> Vec<String> {
    (0..count)
        .map(|number| vmdisk_benches::domain(number, 1))
        .collect()
}

fn reading(criterion: &mut Criterion) {
    let texts = fleet(100);
    let bytes: usize = texts.iter().map(String::len).sum();
    let mut group = criterion.benchmark_group("read");
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function("100 domains", |bencher| {
        bencher.iter(|| {
            texts
                .iter()
                .map(|text| {
                    read(black_box(text)).map_or(0, |document| document.domain().disks.len())
                })
                .sum::<usize>()
        });
    });
    group.finish();
}

/// A guest with that many disks on SCSI, whose addresses libvirt fills in; each has a mistake that can be fixed.
fn guest(disks: u64) -> String {
    let domain = Domain {
        name: Some("many".to_owned()),
        architecture: Some(Architecture::X86_64),
        machine: Some(MachineType::new("q35")),
        disks: (0..disks)
            .map(|number| {
                let mut disk = Disk::new(
                    Frontend::new(vmdisk_benches::target("sd", number), TargetBus::Scsi),
                    Image::file(format!("/srv/{number}.qcow2"), Format::Qcow2),
                );
                disk.backend.cache = Some(CacheMode::Unsafe);
                disk
            })
            .collect(),
        ..Domain::default()
    };
    write::libvirt_xml(&domain).expect("plain paths")
}

/// Disks per second must not differ between the two sizes: nothing may look at each disk for each disk.
fn large(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one guest");
    group.sample_size(10);
    let options = LintOptions::default();
    for disks in [1_000, 10_000] {
        let text = guest(disks);
        let document = || read(&text).expect("it was written by us");
        let resolved = write::libvirt_xml(&resolve(&document()).domain);
        let resolved = resolved.expect("plain paths");
        group.throughput(Throughput::Elements(disks));
        let mut bench = |what: &str, run: &dyn Fn() -> usize| {
            let name = format!("{what}, {disks} disks");
            group.bench_function(name, |bencher| bencher.iter(|| black_box(run())));
        };
        bench("read", &|| document().domain().disks.len());
        let read_once = document();
        bench("lint", &|| lint(&read_once, &options).diagnostics.len());
        let with_controllers = read(&resolved).expect("it was written by us");
        bench("lint with controllers", &|| {
            lint(&with_controllers, &options).diagnostics.len()
        });
        bench("fix", &|| {
            fix(&text, &options, FixScope::Safe).map_or(0, |fixed| fixed.mended.len())
        });
        bench("resolve", &|| resolve(&read_once).domain.controllers.len());
        bench("write as libvirt XML", &|| {
            write::libvirt_xml(read_once.domain()).map_or(0, |text| text.len())
        });
        bench("write as a QEMU command line", &|| {
            write::qemu_command_line(read_once.domain(), &write::QemuOptions::default())
                .map_or(0, |command| command.argv().len())
        });
    }
    group.finish();
}

fn linting(criterion: &mut Criterion) {
    let texts = fleet(1000);
    let bytes: usize = texts.iter().map(String::len).sum();
    let options = LintOptions::default();
    let findings = |text: &String| {
        read(text).map_or(0, |document| lint(&document, &options).diagnostics.len())
    };
    let mut group = criterion.benchmark_group("lint");
    group
        .sample_size(20)
        .throughput(Throughput::Bytes(bytes as u64));
    group.bench_function("1,000 domains, one thread", |bencher| {
        bencher.iter(|| black_box(&texts).iter().map(findings).sum::<usize>())
    });
    group.bench_function("1,000 domains, all threads", |bencher| {
        bencher.iter(|| black_box(&texts).par_iter().map(findings).sum::<usize>())
    });
    group.finish();
}

fn emitting(criterion: &mut Criterion) {
    let domains: Vec<Domain> = fleet(100)
        .iter()
        .filter_map(|text| read(text).ok())
        .map(vmdisk::Document::into_domain)
        .collect();
    let options = write::QemuOptions::default();
    let mut group = criterion.benchmark_group("emit");
    group.bench_function("100 domains as libvirt XML", |bencher| {
        bencher.iter(|| {
            black_box(&domains)
                .iter()
                .map(|domain| write::libvirt_xml(domain).map_or(0, |text| text.len()))
                .sum::<usize>()
        });
    });
    group.bench_function("100 domains as QEMU command lines", |bencher| {
        bencher.iter(|| {
            black_box(&domains)
                .iter()
                .filter_map(|domain| write::qemu_command_line(domain, &options).ok())
                .count()
        });
    });
    group.finish();
}

criterion_group!(benches, reading, large, linting, emitting);
criterion_main!(benches);
