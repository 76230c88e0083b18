//! The picture of the README: the output of a real run on a terminal, in light and dark.

use anstyle::RgbColor;
use anstyle_svg::{Palette, Term};
use vmdisk_tests::{assert_golden, repository, run};

/// The 16 colours of GitHub's terminals: those of a kind are one, since bright ones are hard to read on white.
fn palette(colors: [(u8, u8, u8); 8]) -> Palette {
    let rgb = |index: usize| {
        let (red, green, blue) = colors[index % 8];
        RgbColor(red, green, blue)
    };
    Palette(std::array::from_fn(rgb))
}

#[test]
fn the_picture_of_the_readme_shows_a_real_run() {
    let arguments = [
        "lint",
        "fixtures/mistakes/09-cache-unsafe.xml",
        "--color=always",
    ];
    let shown = run(crate::VMDISK, &arguments, "");
    assert!(shown.stdout.contains("\u{1b}["), "{shown:?}");
    // Links are for terminals.
    let text = format!(
        "$ vmdisk {}\n{}",
        arguments[..2].join(" "),
        shown.stdout.trim_end()
    );
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    for (name, foreground, background, colors) in [
        (
            "docs/run-light.svg",
            RgbColor(31, 35, 40),
            RgbColor(246, 248, 250),
            palette([
                (36, 41, 46),
                (207, 34, 46),
                (26, 127, 55),
                (154, 103, 0),
                (9, 105, 218),
                (130, 80, 223),
                (27, 124, 131),
                (110, 119, 129),
            ]),
        ),
        (
            "docs/run-dark.svg",
            RgbColor(230, 237, 243),
            RgbColor(22, 27, 34),
            palette([
                (72, 79, 88),
                (255, 123, 114),
                (63, 185, 80),
                (210, 153, 34),
                (88, 166, 255),
                (188, 140, 255),
                (57, 197, 207),
                (177, 186, 196),
            ]),
        ),
    ] {
        let term = Term::new()
            .palette(colors)
            .fg_color(foreground.into())
            .bg_color(background.into());
        assert_golden(&repository().join(name), &term.render_svg(&text));
        assert!(readme.contains(name), "{name}");
    }
}
