//! A profile read back, for the tests of its estimates.

use heapwright::profile;
use heapwright_record::debug::{
    Checked, Entry, Profile, Reader, Sampled, SampledMore, SampledPoint,
};
use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;

pub(crate) struct Written {
    pub(crate) sites: Vec<Sampled>,
    /// In the order of the sites.
    pub(crate) more: Vec<SampledMore>,
    pub(crate) points: Vec<SampledPoint>,
    pub(crate) checked: Checked,
    pub(crate) profile: Profile,
}

impl Written {
    pub(crate) fn now() -> Self {
        let path = std::env::temp_dir().join(format!("heapwright-profile-{}", std::process::id()));
        let mut file = std::fs::File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(profile::write(file.as_raw_fd()));
        file.seek(SeekFrom::Start(0)).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        let mut reader = Reader::new(&bytes).unwrap();
        let (mut sites, mut checked, mut profile) = (Vec::new(), None, None);
        let (mut more, mut points) = (Vec::new(), Vec::new());
        let mut stacks = HashMap::new();
        for entry in reader.by_ref() {
            match entry {
                Entry::Stack(stack) => _ = stacks.insert(stack.id, stack.frames.iter().count()),
                Entry::Sampled(site) => sites.push(site),
                Entry::SampledMore(one) => more.push(one),
                Entry::SampledPoint(one) => points.push(one),
                Entry::Profile(one) => profile = Some(one),
                Entry::Checked(one) => checked = Some(one),
                _ => {}
            }
        }
        assert_eq!((reader.problem(), reader.skipped()), (None, 0));
        assert!(sites.iter().all(|site| site.stack == 0 || stacks.contains_key(&site.stack)));
        assert!(sites.iter().map(|site| site.stack).eq(more.iter().map(|more| more.stack)));
        Self { sites, more, points, checked: checked.unwrap(), profile: profile.unwrap() }
    }

    pub(crate) fn sum(&self, field: impl Fn(&Sampled) -> u64) -> u64 {
        self.sites.iter().map(field).sum()
    }

    /// Checks that the live bytes are about `truth`: within six standard errors.
    pub(crate) fn is_about(&self, truth: usize) {
        let errors = self.sites.iter().map(|site| (site.live_error as f64).powi(2)).sum::<f64>();
        let off = (self.checked.bytes as f64 - truth as f64).abs();
        assert!(
            off <= 6.0 * errors.sqrt() + truth as f64 / 1e4 + 16.0,
            "{} live bytes estimated, {truth} live, error {}",
            self.checked.bytes,
            errors.sqrt()
        );
        // The sum over the sites differs by at most the rounding at each site.
        let sum = self.sum(|site| site.live_bytes);
        assert!(self.checked.bytes - sum <= self.sites.len() as u64);
    }
}
