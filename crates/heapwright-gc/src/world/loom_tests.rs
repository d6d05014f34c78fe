//! The world under loom: collectors, and mutators that enter, rest, leave, join and part.
//!
//! ```text
//!   mutator  at work: writes its own canary | away or parked: nothing
//!   collector                                 everybody's canaries
//! ```
//!
//! A canary is loom's cell, which two threads may not touch without an order between them. A thread
//! that is not woken sleeps for ever, which loom reports (`sync::modelled`).

extern crate std;

use std::vec::Vec;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use super::*;

/// A mutator's place, and a canary that no other thread touches while the mutator is at work.
struct Place {
    handshake: Handshake,
    poll: AtomicU32,
    canary: UnsafeCell<usize>,
    /// Stands for the memory of the handshake, which leaves the world when the mutator parts.
    membership: UnsafeCell<usize>,
}

struct Scene {
    world: World,
    places: Vec<Place>,
}

fn touch(canary: &UnsafeCell<usize>) {
    canary.with_mut(|count| {
        // SAFETY: loom checks that nobody else touches it.
        unsafe { *count += 1 };
    });
}

impl Scene {
    fn new(places: usize, joined: usize) -> Arc<Self> {
        let place = |_| Place {
            handshake: Handshake::new(),
            poll: AtomicU32::new(0),
            canary: UnsafeCell::new(0),
            membership: UnsafeCell::new(0),
        };
        let scene =
            Arc::new(Self { world: World::new(), places: (0..places).map(place).collect() });
        (0..joined).for_each(|me| scene.join(me));
        scene
    }

    fn join(&self, me: usize) {
        let place = &self.places[me];
        // SAFETY: the place is in no world yet, and the scene outlives its membership.
        unsafe { self.world.join(&place.handshake, &place.poll, core::ptr::null_mut()) };
    }

    fn part(&self, me: usize) {
        let place = &self.places[me];
        self.world.part(&place.handshake);
        touch(&place.membership);
    }

    /// Enters, works, checks once whether it is to stop, continues, leaves.
    fn work(&self, me: usize) {
        let Place { handshake, poll, canary, .. } = &self.places[me];
        self.world.enter(handshake);
        touch(canary);
        if poll.load(Ordering::Relaxed) != 0 {
            self.world.rest(handshake, || {});
            touch(canary);
        }
        self.world.leave(handshake);
    }

    fn collect(&self) {
        self.world.each(|handshake| {
            let place = self.place_of(handshake);
            place.membership.with(|_| {});
            true
        });
        self.places.iter().for_each(|place| touch(&place.canary));
        self.world.go_on();
    }

    fn place_of(&self, handshake: &Handshake) -> &Place {
        self.places.iter().find(|place| ptr::eq(&raw const place.handshake, handshake)).unwrap()
    }

    /// Enters and collects, unless another thread collects. Returns whether it collected.
    fn try_to_collect(&self, me: usize) -> bool {
        let Place { handshake, canary, .. } = &self.places[me];
        self.world.enter(handshake);
        touch(canary);
        let first = self.world.stop(handshake);
        if first {
            self.collect();
        } else {
            self.world.rest(handshake, || {});
        }
        touch(canary);
        self.world.leave(handshake);
        first
    }
}

/// Runs threads that each do something with the scene. The first runs in this thread.
fn together(scene: &Arc<Scene>, does: &[fn(&Scene, usize)]) {
    let others: Vec<_> = (1..does.len())
        .map(|me| {
            let (scene, does) = (Arc::clone(scene), does[me]);
            thread::spawn(move || does(&scene, me))
        })
        .collect();
    does[0](scene, 0);
    for other in others {
        other.join().unwrap();
    }
}

fn collects(scene: &Scene, me: usize) {
    scene.try_to_collect(me);
}

fn works(scene: &Scene, me: usize) {
    scene.work(me);
}

#[test]
fn loom_the_world_stands_still_for_one_who_comes_rests_and_goes() {
    loom::model(|| {
        let scene = Scene::new(2, 2);
        together(&scene, &[collects, works]);
    });
}

#[test]
fn loom_who_left_and_comes_back_sees_what_was_done() {
    loom::model(|| {
        let scene = Scene::new(2, 2);
        together(
            &scene,
            &[collects, |scene, me| {
                let Place { handshake, canary, .. } = &scene.places[me];
                for _ in 0..2 {
                    scene.world.enter(handshake);
                    touch(canary);
                    scene.world.leave(handshake);
                }
            }],
        );
    });
}

#[test]
fn loom_who_is_asked_rests() {
    loom::model(|| {
        let scene = Scene::new(2, 2);
        let handshake = &scene.places[1].handshake;
        scene.world.enter(handshake);
        together(
            &scene,
            &[
                |scene, me| assert!(scene.try_to_collect(me)),
                |scene, me| {
                    let Place { handshake, poll, canary, .. } = &scene.places[me];
                    while poll.load(Ordering::Relaxed) == 0 {
                        touch(canary);
                        thread::yield_now();
                    }
                    scene.world.rest(handshake, || {});
                    touch(canary);
                    scene.world.leave(handshake);
                },
            ],
        );
    });
}

#[test]
fn loom_of_two_collectors_one_is_first_and_the_other_rests() {
    loom::model(|| {
        let scene = Scene::new(2, 2);
        together(&scene, &[collects, collects]);
        assert_eq!(scene.world.stop.load(Ordering::Relaxed), 0);
    });
}

#[test]
fn loom_two_collections_in_a_row() {
    // A thread that wakes too late for the first collection stops for the second all the same.
    loom::model(|| {
        let scene = Scene::new(2, 2);
        together(
            &scene,
            &[
                |scene, me| {
                    let handshake = &scene.places[me].handshake;
                    scene.world.enter(handshake);
                    for _ in 0..2 {
                        assert!(scene.world.stop(handshake));
                        scene.collect();
                    }
                    scene.world.leave(handshake);
                },
                works,
            ],
        );
    });
}

#[test]
fn loom_a_collector_a_mutator_and_one_without_a_seat() {
    // One thread collects without a handshake, as a fork may.
    loom::model(|| {
        let scene = Scene::new(2, 2);
        together(
            &scene,
            &[
                |scene, _| {
                    if scene.world.stop_until(None, || true) == Stop::Done {
                        scene.collect();
                    }
                },
                collects,
            ],
        );
    });
}

#[test]
fn loom_who_does_not_wait_lets_the_world_go_on() {
    loom::model(|| {
        let scene = Scene::new(2, 2);
        together(
            &scene,
            &[
                |scene, _| {
                    if scene.world.stop_until(None, || false) == Stop::Done {
                        scene.collect();
                    }
                },
                works,
            ],
        );
        assert_eq!(scene.world.stop.load(Ordering::Relaxed), 0);
        assert!(scene.places.iter().all(|place| place.poll.load(Ordering::Relaxed) == 0));
    });
}

#[test]
fn loom_one_parts_while_the_world_stands_still() {
    loom::model(|| {
        let scene = Scene::new(3, 3);
        together(&scene, &[collects, |scene, me| scene.part(me)]);
    });
}

#[test]
fn loom_one_joins_and_another_collects() {
    loom::model(|| {
        let scene = Scene::new(2, 1);
        together(
            &scene,
            &[collects, |scene, me| {
                scene.join(me);
                scene.work(me);
                scene.part(me);
            }],
        );
        let mut members = 0;
        scene.world.each(|_| {
            members += 1;
            true
        });
        assert_eq!(members, 1);
    });
}

#[test]
fn loom_three_of_whom_one_collects() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let scene = Scene::new(3, 3);
        together(
            &scene,
            &[collects, works, |scene, me| {
                let Place { handshake, canary, .. } = &scene.places[me];
                scene.world.enter(handshake);
                touch(canary);
                scene.world.leave(handshake);
            }],
        );
    });
}

/// Worlds, and the substrate's fork lock. A thread has the same place in each world.
struct Scenes {
    worlds: Vec<Arc<Scene>>,
    forking: Lock<()>,
}

impl Scenes {
    fn new(worlds: usize, threads: usize) -> Arc<Self> {
        let worlds = (0..worlds).map(|_| Scene::new(threads, threads)).collect();
        Arc::new(Self { worlds, forking: Lock::new(()) })
    }

    fn each_seat<'a>(&'a self, me: usize, with: &mut dyn FnMut(&'a World, &'a Handshake)) {
        self.worlds.iter().for_each(|scene| with(&scene.world, &scene.places[me].handshake));
    }

    /// Enters all worlds, like a thread that waits for the first one.
    fn enter(&self, me: usize) {
        self.each_seat(me, &mut |world, handshake| world.come_later(handshake));
        come_back(&|with| self.each_seat(me, with));
        self.worlds.iter().for_each(|scene| touch(&scene.places[me].canary));
    }

    fn leave(&self, me: usize) {
        self.worlds.iter().for_each(|scene| touch(&scene.places[me].canary));
        self.each_seat(me, &mut |world, handshake| world.leave(handshake));
    }

    fn collect(&self, me: usize, of: usize) {
        let scene = &self.worlds[of];
        let own = &scene.places[me].handshake;
        let leave = || {
            leave_all(&|with| self.each_seat(me, with), Some(own));
            true
        };
        if scene.world.stop_until(Some(own), leave) == Stop::Done {
            scene.collect();
        } else {
            leave();
            scene.world.rest(own, || {});
        }
        come_back(&|with| self.each_seat(me, with));
    }

    fn fork(&self, me: usize) {
        stop_all(
            me + 1,
            &|with| {
                self.worlds
                    .iter()
                    .all(|scene| with(&scene.world, Some(&scene.places[me].handshake)));
            },
            || || true,
        );
        let held = self.forking.lock();
        for scene in &self.worlds {
            scene.places.iter().for_each(|place| touch(&place.canary));
        }
        drop(held);
        self.worlds.iter().for_each(|scene| scene.world.let_go(me + 1));
    }
}

/// Runs threads that are at work in all worlds and make one call each, with few preemptions.
fn at_work(worlds: usize, does: &'static [fn(&Scenes, usize)]) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(move || {
        let scenes = Scenes::new(worlds, does.len());
        let lives = |scenes: &Scenes, me: usize| {
            scenes.enter(me);
            does[me](scenes, me);
            scenes.leave(me);
        };
        let others: Vec<_> = (1..does.len())
            .map(|me| {
                let scenes = Arc::clone(&scenes);
                thread::spawn(move || lives(&scenes, me))
            })
            .collect();
        lives(&scenes, 0);
        for other in others {
            other.join().unwrap();
        }
    });
}

#[test]
fn loom_collectors_of_two_worlds_do_not_wait_for_each_other() {
    at_work(2, &[|scenes, me| scenes.collect(me, 0), |scenes, me| scenes.collect(me, 1)]);
}

#[test]
fn loom_a_fork_and_a_collector_of_its_second_world() {
    at_work(2, &[Scenes::fork, |scenes, me| scenes.collect(me, 1)]);
}

#[test]
fn loom_two_forks() {
    at_work(2, &[Scenes::fork, Scenes::fork]);
}

#[test]
fn loom_two_forks_and_a_collector() {
    at_work(1, &[Scenes::fork, Scenes::fork, |scenes, me| scenes.collect(me, 0)]);
}

#[test]
fn loom_who_is_visited_parts_afterwards() {
    loom::model(|| {
        let scene = Scene::new(2, 2);
        together(
            &scene,
            &[
                |scene, _| {
                    let visit = |place: &Place| place.membership.with(|_| {});
                    scene.world.visit(|handshake| visit(scene.place_of(handshake)));
                },
                |scene, me| scene.part(me),
            ],
        );
        let mut left = 0;
        scene.world.visit(|_| left += 1);
        assert_eq!(left, 1);
    });
}
