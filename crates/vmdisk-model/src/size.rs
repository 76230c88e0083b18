//! Sizes in bytes.

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// The binary units, the largest first.
const UNITS: [&str; 6] = ["EiB", "PiB", "TiB", "GiB", "MiB", "KiB"];

/// Why a text is not a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizeError {
    /// No number at the front.
    NotANumber,
    /// A unit nobody knows.
    UnknownUnit(String),
    /// More than 2^64 - 1 bytes.
    TooLarge,
}

impl std::fmt::Display for SizeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SizeError::NotANumber => f.write_str("expected a number with a unit, such as 40G"),
            SizeError::UnknownUnit(unit) => write!(
                f,
                "unknown unit `{unit}`, expected one of K, M, G, T, P (powers of 1024; KB and so on are powers of 1000)"
            ),
            SizeError::TooLarge => f.write_str("larger than 2^64 - 1 bytes"),
        }
    }
}

impl std::error::Error for SizeError {}

impl std::str::FromStr for Bytes {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        Self::parse(text)
    }
}

impl Bytes {
    /// One KiB.
    pub const KIB: u64 = 1024;
    /// One MiB.
    pub const MIB: u64 = 1024 * Self::KIB;
    /// One GiB.
    pub const GIB: u64 = 1024 * Self::MIB;

    /// `count` GiB, or the largest size if there are too many.
    pub const fn gib(count: u64) -> Self {
        Bytes(count.saturating_mul(Self::GIB))
    }

    /// Reads `40G`, `512M`, `1.5T`, `64KiB`, `10GB` or a plain number of bytes.
    ///
    /// One letter and the `iB` forms are powers of 1024, as qemu-img and lvcreate have them; the
    /// `KB` forms are powers of 1000, as libvirt has them.
    ///
    /// # Errors
    /// If the number is missing, the unit is unknown, or the value does not fit 64 bits.
    pub fn parse(text: &str) -> Result<Self, SizeError> {
        let text = text.trim();
        if text.starts_with('-') {
            return Err(SizeError::NotANumber);
        }
        let digits = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let scale = Self::scale(unit.trim())?;
        if let Ok(whole) = number.parse::<u64>() {
            return whole
                .checked_mul(scale)
                .map(Bytes)
                .ok_or(SizeError::TooLarge);
        }
        let value: f64 = number.parse().map_err(|_| SizeError::NotANumber)?;
        let bytes = value * scale as f64;
        // 2^64 as a float; the comparison also refuses NaN and infinity.
        if !(0.0..18_446_744_073_709_551_616.0).contains(&bytes) {
            return Err(SizeError::TooLarge);
        }
        Ok(Bytes(bytes as u64))
    }

    /// The value in the largest binary unit that it reaches, to the nearest of three digits: `53.8 GiB`, `1.5 TiB`, `120 GiB`.
    pub fn rounded(self) -> String {
        let reached = UNITS.iter().enumerate().find_map(|(at, unit)| {
            let scale = 1u64 << (10 * (UNITS.len() - at));
            (self.0 >= scale).then_some((unit, scale))
        });
        let Some((unit, scale)) = reached else {
            return self.to_string();
        };
        let (value, scale) = (u128::from(self.0), u128::from(scale));
        let nearest = |decimals: u32| (value * 10_u128.pow(decimals) + scale / 2) / scale;
        let decimals = (0..3).rev().find(|it| nearest(*it) < 1000).unwrap_or(0);
        let power = 10_u128.pow(decimals);
        let digits = nearest(decimals);
        let text = format!(
            "{}.{:0width$}",
            digits / power,
            digits % power,
            width = decimals as usize
        );
        // A zero at the end says that the value is not quite that.
        let is_exact = (value * power).is_multiple_of(scale);
        let text = match is_exact || decimals == 0 {
            true => text.trim_end_matches('0').trim_end_matches('.'),
            false => &text,
        };
        format!("{text} {unit}")
    }

    /// Bytes in one `unit` (empty means one byte).
    ///
    /// # Errors
    /// If the unit is unknown.
    pub fn scale(unit: &str) -> Result<u64, SizeError> {
        const LETTERS: &str = "kmgtpe";
        let lower = unit.to_ascii_lowercase();
        if lower.is_empty() || lower == "b" || lower == "bytes" || lower == "byte" {
            return Ok(1);
        }
        let unknown = || SizeError::UnknownUnit(unit.to_owned());
        let mut letters = lower.chars();
        let power = letters
            .next()
            .and_then(|letter| LETTERS.find(letter))
            .ok_or_else(unknown)?;
        let base: u64 = match letters.as_str() {
            "" | "ib" => 1024,
            "b" => 1000,
            _ => return Err(unknown()),
        };
        Ok(base.pow(power as u32 + 1))
    }
}

impl std::fmt::Display for Bytes {
    /// The largest binary unit that divides the value: `40 GiB`, `1536 MiB`, `513 bytes`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, unit) in UNITS.iter().enumerate() {
            let scale = 1u64 << (10 * (UNITS.len() - at));
            if self.0 != 0 && self.0.is_multiple_of(scale) {
                return write!(f, "{} {unit}", self.0 / scale);
            }
        }
        write!(f, "{} bytes", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_too_large_is_the_largest_and_texts_are_parsed() {
        assert_eq!(Bytes::gib(u64::MAX), Bytes(u64::MAX));
        assert_eq!("40G".parse(), Ok(Bytes::gib(40)));
        assert_eq!("16E".parse::<Bytes>(), Err(SizeError::TooLarge));
    }

    #[test]
    fn sizes_are_read_as_the_tools_of_the_field_read_them() {
        for (text, bytes) in [
            ("40G", 40 << 30),
            ("512M", 512 << 20),
            ("64KiB", 65536),
            ("10GB", 10_000_000_000),
            ("1.5T", 3 << 39),
            ("513", 513),
            ("513B", 513),
            (" 2 g ", 2 << 30),
            ("1 byte", 1),
            ("2 Bytes", 2),
        ] {
            assert_eq!(Bytes::parse(text), Ok(Bytes(bytes)), "{text}");
        }
        assert_eq!(Bytes::parse("G"), Err(SizeError::NotANumber));
        assert_eq!(Bytes::parse(""), Err(SizeError::NotANumber));
        assert_eq!(Bytes::parse("-1G"), Err(SizeError::NotANumber));
        assert_eq!(Bytes::parse("4X"), Err(SizeError::UnknownUnit("X".into())));
        for large in ["99999999E", "16.5E", "16.0E"] {
            assert_eq!(Bytes::parse(large), Err(SizeError::TooLarge), "{large}");
        }
        assert_eq!(
            Bytes::parse("1.9e99"),
            Err(SizeError::UnknownUnit("e99".into()))
        );
    }

    #[test]
    fn sizes_are_shown_in_the_largest_unit_that_divides_them() {
        assert_eq!(Bytes(40 << 30).to_string(), "40 GiB");
        assert_eq!(Bytes(57_757_667_328).rounded(), "53.8 GiB");
        assert_eq!(Bytes(3 << 39).rounded(), "1.5 TiB");
        assert_eq!(Bytes(125_828_528 << 10).rounded(), "120 GiB");
        assert_eq!(Bytes((40 << 30) + 1).rounded(), "40.0 GiB");
        assert_eq!(Bytes(1_400_000_000_000).rounded(), "1.27 TiB");
        assert_eq!(Bytes(1023 << 20).rounded(), "1023 MiB");
        assert_eq!(Bytes((10 << 30) - 1).rounded(), "10.0 GiB");
        assert_eq!(Bytes(40 << 30).rounded(), "40 GiB");
        assert_eq!(Bytes(1 << 30).rounded(), "1 GiB");
        assert_eq!(Bytes(u64::MAX).rounded(), "16.0 EiB");
        assert_eq!(Bytes(513).rounded(), "513 bytes");
        assert_eq!(Bytes(1536 << 20).to_string(), "1536 MiB");
        assert_eq!(Bytes(513).to_string(), "513 bytes");
        assert_eq!(Bytes(0).to_string(), "0 bytes");
    }
}
