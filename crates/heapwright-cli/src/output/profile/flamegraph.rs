//! The folded stacks as a picture, by inferno: one SVG file that a browser zooms and searches.

use super::folded;
use crate::output::sentences;
use crate::report::held::Fate;
use crate::report::model::{Amount, Figure, Report};
use heapwright_record::debug::Reach;
use inferno::flamegraph::color::{BackgroundColor, BasicPalette, Color, Palette, PaletteMap};
use inferno::flamegraph::{self, Options};
use std::io;

/// The picture if no memory is held.
const NOTHING: &str = "\
<svg version=\"1.1\" width=\"640\" height=\"60\" viewBox=\"0 0 640 60\" xmlns=\"http://www.w3.org/2000/svg\">\
<text x=\"320\" y=\"36\" text-anchor=\"middle\" font-family=\"monospace\">No block is held.</text>\
</svg>\n";

const WHITE: Color = Color { r: 255, g: 255, b: 255 };

/// The colours of fates, as on the page of a report.
const FATES: [(Fate, Color); 4] = [
    (Fate::Checked(Reach::Definite), Color { r: 0xe8, g: 0x6a, b: 0x78 }),
    (Fate::Checked(Reach::Indirect), Color { r: 0xea, g: 0x9c, b: 0x78 }),
    (Fate::Checked(Reach::Possible), Color { r: 0xe4, g: 0xb9, b: 0x55 }),
    (Fate::Live, Color { r: 0xa9, g: 0xb4, b: 0xc1 }),
];
const PROFILED: Color = Color { r: 0xa9, g: 0xb4, b: 0xc1 };

pub(crate) fn write(report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
    let lines = folded::lines(report);
    if lines.is_empty() {
        return out.write_all(NOTHING.as_bytes());
    }
    let mut options = Options::default();
    options.title = title(report).to_owned();
    options.subtitle = report.first().map(sentences::command);
    options.count_name = "bytes".to_owned();
    options.name_type = "Function:".to_owned();
    options.notes = sentences::amount(total(report));
    options.colors = Palette::Basic(BasicPalette::Aqua);
    options.bgcolors = Some(BackgroundColor::Flat(WHITE));
    options.deterministic = true;
    // The least width in percent: half a pixel, as on the page of a report.
    options.min_width = 0.04;
    let mut fates = PaletteMap::default();
    for (fate, colour) in FATES {
        fates.insert(fate.word(), colour);
    }
    fates.insert(report.wanted.figure.word(), PROFILED);
    options.palette_map = Some(&mut fates);
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), out)
}

fn title(report: &Report) -> &'static str {
    if !report.checks().any(|check| check.profile.is_some()) {
        return "Memory held at the end";
    }
    match report.wanted.figure {
        Figure::Peak => "Memory live at the peak",
        Figure::Live => "Memory live at the end",
        Figure::Allocated => "Memory allocated",
        Figure::Temporary => "Memory freed within a millisecond",
        Figure::Growth => "Growth of live memory since an earlier moment",
    }
}

fn total(report: &Report) -> Amount {
    crate::report::held::held(report).iter().map(|held| held.amount).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    fn picture(report: &Report) -> String {
        let mut out = Vec::new();
        write(report, &mut out).expect("is written");
        String::from_utf8(out).expect("is text")
    }

    #[test]
    fn a_picture_says_what_it_counts_and_is_the_same_each_time() {
        let svg = picture(&sample::report());
        for part in [
            "Memory held at the end",
            "bytes",
            "definitely-lost (1,214,904 bytes",
            "still-reachable (5,648,672 bytes",
            "rgb(232,106,120)",
            "Session::open (1,214,880 bytes",
            "&lt;script&gt;alert",
            "--motd=&lt;b>hi",
        ] {
            let xml = svg.replace("&gt;", ">");
            assert!(xml.contains(&part.replace("&gt;", ">")), "{part}");
        }
        assert!(!svg.contains("<script>alert") && !svg.contains("<b>hi"));
        assert_eq!(svg, picture(&sample::report()));
    }

    #[test]
    fn nothing_is_a_picture_too() {
        assert!(picture(&Report::default()).contains("No block is held."));
    }
}
