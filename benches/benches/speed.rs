//! Speed of reading, linting and emitting. Compare runs of one machine only.
#![allow(missing_docs, reason = "criterion's macros make the functions")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rayon::prelude::*;
use vmdisk::model::{Disk, Domain, Format, Frontend, Image, TargetBus};
use vmdisk::{LintOptions, lint, read, write};

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
    let many = Domain {
        disks: (0..10_000)
            .map(|number| {
                Disk::new(
                    Frontend::new(format!("vd{number}"), TargetBus::Virtio),
                    Image::file(format!("/srv/{number}.img"), Format::Raw),
                )
            })
            .collect(),
        ..Domain::default()
    };
    let text = write::libvirt_xml(&many).expect("plain paths");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.sample_size(10);
    group.bench_function("10,000 disks", |bencher| {
        bencher.iter(|| read(black_box(&text)).map_or(0, |document| document.domain().disks.len()))
    });
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

criterion_group!(benches, reading, linting, emitting);
criterion_main!(benches);
