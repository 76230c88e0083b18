//! Walks over images that exist in a map only.
#![allow(
    clippy::unwrap_used,
    reason = "a test stops where something is not as it says"
)]

use std::collections::BTreeMap;

use crate::support::image::{Image, qcow2_v3, with_backing, with_extensions};
use vmdisk_image::chain::{
    Chain, End, Found, MAX_IMAGES, RecordedFormat, Resolution, ResolvedName, Top, place, walk,
};
use vmdisk_image::{BackingReference, Extension, ImageFormat, Name};

type Files = BTreeMap<String, Image>;

fn overlay(backing: &str, format: Option<&str>) -> Image {
    let image = match format {
        Some(format) => with_extensions(
            qcow2_v3(),
            &[(Extension::BACKING_FORMAT, format.as_bytes())],
        ),
        None => qcow2_v3(),
    };
    with_backing(image, backing.as_bytes())
}

fn walked(files: &Files, top: &str, format: Option<ImageFormat>) -> Chain<String> {
    let top = Top {
        identity: top.to_owned(),
        location: top.into(),
        header: files[top].header(),
        format,
    };
    walk(top, |reference| {
        let ResolvedName::Path(path) = &reference.place else {
            return Resolution::NotFollowed {
                reason: "not a path".into(),
            };
        };
        let name = path.as_str().unwrap().to_owned();
        match files.get(&name) {
            Some(image) if name.ends_with(".unreadable") => {
                assert!(!image.0.is_empty());
                Resolution::Unreadable {
                    reason: "permission denied".into(),
                }
            }
            Some(image) => Resolution::Found(Box::new(Found {
                identity: name,
                location: path.clone(),
                header: image.header(),
            })),
            None => Resolution::Missing {
                reason: "no such file".into(),
            },
        }
    })
}

fn files(images: Vec<(&str, Image)>) -> Files {
    images
        .into_iter()
        .map(|(name, image)| (name.to_owned(), image))
        .collect()
}

#[test]
fn a_chain_ends_at_its_base() {
    let files = files(vec![
        ("/a", overlay("b", Some("qcow2"))),
        ("/b", overlay("/c", None)),
        ("/c", overlay("d", Some("raw"))),
        ("/d", Image::zeros(512)),
    ]);
    let chain = walked(&files, "/a", None);
    assert_eq!(chain.end, End::Base);
    let recorded: Vec<&RecordedFormat> = chain.links.iter().map(|link| &link.recorded).collect();
    let known = RecordedFormat::Known(ImageFormat::Qcow2);
    let raw = RecordedFormat::Known(ImageFormat::Raw);
    assert_eq!(
        recorded,
        [&RecordedFormat::None, &known, &RecordedFormat::None, &raw]
    );
    assert!(chain.links.iter().all(|link| !link.format_differs()));
}

#[test]
fn the_longest_chain_libvirt_allows_is_walked_and_no_longer_one() {
    for (images, end) in [
        (MAX_IMAGES, End::Base),
        (MAX_IMAGES + 1, End::TooDeep),
        (1000, End::TooDeep),
    ] {
        let mut files = Files::new();
        for index in 0..images - 1 {
            files.insert(
                format!("/{index}"),
                overlay(&format!("{}", index + 1), Some("qcow2")),
            );
        }
        files.insert(format!("/{}", images - 1), qcow2_v3());
        let chain = walked(&files, "/0", Some(ImageFormat::Qcow2));
        assert_eq!(
            (chain.links.len(), chain.end),
            (images.min(MAX_IMAGES), end)
        );
    }
}

#[test]
fn loops_are_found_by_identity_and_not_by_name() {
    let files = files(vec![
        ("/a", overlay("b", Some("qcow2"))),
        ("/b", overlay("./a", Some("qcow2"))),
    ]);
    // `/./a` is not a key of the map, so it is missing by name …
    assert!(matches!(
        walked(&files, "/a", None).end,
        End::Missing { .. }
    ));
    // … and by identity it is the top again.
    let top = Top {
        identity: 0,
        location: "/a".into(),
        header: files["/a"].header(),
        format: None,
    };
    let chain = walk(top, |reference| {
        let ResolvedName::Path(path) = &reference.place else {
            panic!("{reference:?}")
        };
        let name = path.as_str().unwrap().replace("./", "");
        let identity = i32::from(name == "/b");
        Resolution::Found(Box::new(Found {
            identity,
            location: path.clone(),
            header: files[&name].header(),
        }))
    });
    assert_eq!((chain.links.len(), chain.end), (2, End::Loop { to: 0 }));
}

#[test]
fn missing_unreadable_and_unfollowed_images_end_the_chain_with_their_place() {
    let files = files(vec![
        ("/missing", overlay("gone", Some("raw"))),
        ("/unreadable", overlay("x.unreadable", Some("raw"))),
        ("/x.unreadable", Image::zeros(1)),
        ("/remote", overlay("nbd://host/x", Some("raw"))),
        (
            "/json",
            overlay("json:{\"driver\":\"null-co\"}", Some("raw")),
        ),
        ("/protocol-format", overlay("gone", Some("file"))),
    ]);
    let end = |name: &str| walked(&files, name, Some(ImageFormat::Qcow2)).end;
    let gone = ResolvedName::Path("/gone".into());
    assert_eq!(
        end("/missing"),
        End::Missing {
            place: gone,
            reason: "no such file".into()
        }
    );
    assert!(matches!(
        end("/unreadable"),
        End::Unreadable {
            place: ResolvedName::Path(_),
            ..
        }
    ));
    assert!(matches!(
        end("/remote"),
        End::NotFollowed {
            place: ResolvedName::Protocol(_),
            ..
        }
    ));
    assert!(matches!(
        end("/json"),
        End::NotFollowed {
            place: ResolvedName::Json(_),
            ..
        }
    ));
    assert!(matches!(end("/protocol-format"), End::Missing { .. }));
}

#[test]
fn a_format_other_than_the_recorded_one_is_reported() {
    let files = files(vec![
        ("/as-raw", overlay("overlay", Some("raw"))),
        ("/as-qcow2", overlay("raw", Some("qcow2"))),
        ("/as-unknown", overlay("overlay", Some("qcow3"))),
        ("/as-file", overlay("overlay", Some("file"))),
        ("/overlay", overlay("raw", Some("raw"))),
        ("/raw", Image::zeros(512)),
    ]);
    for (top, end, opened) in [
        ("/as-raw", End::Base, Some(ImageFormat::Raw)),
        ("/as-file", End::Base, Some(ImageFormat::Raw)),
        ("/as-qcow2", End::NotOpened, Some(ImageFormat::Qcow2)),
        ("/as-unknown", End::NotOpened, None),
    ] {
        let chain = walked(&files, top, Some(ImageFormat::Qcow2));
        assert_eq!((chain.links.len(), &chain.end), (2, &end), "{top}");
        assert!(chain.links[1].format_differs(), "{top}");
        assert_eq!(chain.links[1].opened_as(), opened, "{top}");
    }
    // The top itself is declared raw and not inspected.
    let chain = walked(&files, "/overlay", Some(ImageFormat::Raw));
    assert_eq!((chain.links.len(), chain.end), (1, End::Base));
    assert!(chain.links[0].format_differs());
    assert_eq!(
        walked(&files, "/raw", Some(ImageFormat::Qcow2)).end,
        End::NotOpened
    );
    // Left to probing, a qcow2 is one, and a fixed VHD is raw.
    assert_eq!(walked(&files, "/overlay", None).links.len(), 2);
}

#[test]
fn names_are_joined_as_in_qemu() {
    let path = |path: &str| ResolvedName::Path(path.into());
    let cases = [
        ("/srv/top", "base", path("/srv/base")),
        ("/srv/top", "../base", path("/srv/../base")),
        ("/top", "sub/base", path("/sub/base")),
        ("top", "base", path("base")),
        ("dir/top", "base", path("dir/base")),
        ("/srv/top", "/base", path("/base")),
        ("/srv/a:b/top", "base", path("/srv/a:b/base")),
        ("/srv/top", "file:/base", path("/base")),
        ("/srv/top", "file:///base", path("///base")),
        (
            "/srv/top",
            "file:base",
            ResolvedName::WorkingDirectory("base".into()),
        ),
        (
            "/srv/top",
            "nbd://host/x",
            ResolvedName::Protocol("nbd://host/x".into()),
        ),
        ("/srv/top", "json:{}", ResolvedName::Json("json:{}".into())),
        ("file:/srv/top", "base", path("/srv/base")),
        (
            "http://host/dir/top",
            "base",
            ResolvedName::Protocol("http://host/dir/base".into()),
        ),
        ("http://host/dir/top", "/base", path("/base")),
        ("json:{}", "base", ResolvedName::Unresolvable),
        ("json:{}", "/base", path("/base")),
        ("", "base", ResolvedName::Unresolvable),
        ("", "/base", path("/base")),
    ];
    for (location, name, expected) in cases {
        let reference = BackingReference::from_bytes(name.as_bytes());
        assert_eq!(
            place(&Name::from(location), &reference),
            expected,
            "{name} in {location}"
        );
    }
    let files = files(vec![("", overlay("base", Some("raw")))]);
    assert_eq!(walked(&files, "", None).end, End::Unresolvable);
}
