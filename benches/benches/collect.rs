//! Speed of asking this host; 50 ms for one guest on an idle host is the bound.
#![allow(missing_docs, reason = "criterion's macros make the functions")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use vmdisk_collect::{Request, collect};

/// The facts of a host for a guest with one image, as `vmdisk facts --for` and `--live` collect them.
fn collecting(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let image = folder.path().join("web1.img");
    std::fs::write(&image, vec![0; 1 << 20]).expect("files can be written");
    let mut request = Request::new("2026-11-20T05:00:00Z");
    request.paths.push(image.clone());
    request.chains.push(image);
    let mut group = criterion.benchmark_group("collect");
    group.bench_function("one guest", |bencher| {
        bencher.iter(|| {
            let facts = collect(black_box(&request));
            assert_eq!(facts.files.len(), 1);
            facts
        });
    });
    group.finish();
}

criterion_group!(benches, collecting);
criterion_main!(benches);
