//! The common traits of a vector and a queue: `Copy`, iteration by number, and `Debug`.

macro_rules! sequence {
    ($of:ident) => {
        crate::copied::copied!($of<'_, T>: T);

        #[doc = concat!("The values of a [`", stringify!($of), "`].")]
        pub struct Iter<'gc, T> {
            of: $of<'gc, T>,
            next: usize,
        }

        impl<'gc, T: Copy + Trace + 'gc> Iterator for Iter<'gc, T> {
            type Item = T;

            #[inline]
            fn next(&mut self) -> Option<T> {
                let value = self.of.get(self.next)?;
                self.next += 1;
                Some(value)
            }
        }

        impl<'gc, T: Copy + Trace + 'gc> IntoIterator for $of<'gc, T> {
            type Item = T;
            type IntoIter = Iter<'gc, T>;

            fn into_iter(self) -> Iter<'gc, T> {
                self.iter()
            }
        }

        impl<'gc, T: Copy + Trace + fmt::Debug + 'gc> fmt::Debug for $of<'gc, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let object = self.0.object();
                crate::printing::print(f, object, |f| f.debug_list().entries(*self).finish())
            }
        }
    };
}

pub(crate) use sequence;
