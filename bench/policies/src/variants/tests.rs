//! The names say what the variants are, and the variants decide what their names say.

use proptest::prelude::*;

use super::*;
use crate::library::tests::{Row, some};
use crate::{CHOSEN, Caches, Choice, Visitor, choose};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_scan_decides_as_the_library_does((caches, current) in some()) {
        let again = caches.clone();
        prop_assert_eq!(scan::<Reviewed>(&caches, current), choose(&again, current));
        prop_assert_eq!(caches.tried, again.tried);
    }

    #[test]
    fn a_scan_of_all_finds_whatever_is_free((caches, current) in some()) {
        struct On(Row, usize);
        impl Visitor for On {
            type Output = Choice;
            fn visit<P: Policy>(self) -> Choice {
                P::choose(&self.0, self.1)
            }
        }
        for variant in ALL.iter().filter(|variant| variant.scan == usize::MAX) {
            let looked_at = |&cache: &usize| !(variant.skip_current && cache == current);
            let free = (0..caches.count()).filter(looked_at).any(|cache| caches.free[cache]);
            let choice = with(variant.name, On(caches.clone(), current)).unwrap();
            prop_assert_eq!(free, matches!(choice, Choice::Locked(_)), "{}", variant.name);
            let (Choice::Locked(cache) | Choice::Wait(cache)) = choice;
            prop_assert!(cache < caches.count());
        }
    }
}

/// A name, from what a variant is.
fn name(variant: &Variant) -> String {
    let count = match variant.scan {
        usize::MAX => "all".to_owned(),
        scan => format!("{scan}"),
    };
    let precedence = if variant.precedence { "precedence" } else { "plain" };
    let fallback = match variant.fallback {
        Fallback::Current => "current",
        Fallback::Random => "random",
    };
    match (variant.order, variant.scan) {
        (Order::Linear, usize::MAX) if variant.precedence => "before".into(),
        (Order::Linear, usize::MAX) => "linear-plain".into(),
        (Order::Random, 0) if fallback == "current" => "stay".into(),
        (Order::Random, 0) => "wander".into(),
        (Order::Random, _) => {
            let skip = if variant.skip_current { "skip-" } else { "" };
            format!("{skip}{precedence}-{count}-{fallback}")
        }
        (Order::Linear, _) => panic!("no name for {variant:?}"),
    }
}

#[test]
fn names_say_what_variants_are() {
    for variant in ALL {
        assert_eq!(variant.name, name(variant));
    }
}

#[test]
fn a_name_leads_to_the_type_it_names() {
    struct Constants;
    impl Visitor for Constants {
        type Output = (usize, Order, bool, bool, Fallback);
        fn visit<P: Policy>(self) -> Self::Output {
            (P::SCAN, P::ORDER, P::PRECEDENCE, P::SKIP_CURRENT, P::FALLBACK)
        }
    }
    let mut seen = Vec::new();
    for v in ALL {
        let constants = (v.scan, v.order, v.precedence, v.skip_current, v.fallback);
        assert_eq!(with(v.name, Constants), Some(constants));
        assert!(!seen.contains(&constants), "{} is there twice", v.name);
        seen.push(constants);
    }
    assert_eq!(with("precedence-5-current", Constants), None);
}

#[test]
fn the_review_measured_nine_and_chose_the_librarys() {
    let nine: Vec<_> = ALL.iter().filter_map(|v| Some((v.name, v.review?))).collect();
    assert_eq!(nine.len(), 9);
    let best = nine.iter().min_by_key(|(_, review)| review.threads_40).unwrap();
    assert_eq!(best.0, CHOSEN);
    struct Runs;
    impl Visitor for Runs {
        type Output = &'static str;
        fn visit<P: Policy>(self) -> &'static str {
            std::any::type_name::<P>()
        }
    }
    assert_eq!(with(CHOSEN, Runs), Some(std::any::type_name::<Reviewed>()));
}
