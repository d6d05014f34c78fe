#!/usr/bin/env bash
# Imports point downward only: each module of heapwright and of its substrate may name, with
# `crate::`, only modules below its own line in ARCHITECTURE.md's picture of the floors, so there are no
# circles either. Each is in the crate whose floor it is. What is compiled for tests alone is left out.
# (heapwright-realm, heapwright-gc and heapwright-stacks are one floor each, and Cargo keeps them apart from what is above.)
#
#   ci/floors.sh
#
# The modules are the first words of a line of the picture, up to two spaces.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

check() { # CRATE DIRECTORY: prints each import that points upward; fails if there is one
    perl -0777 -e '
        my ($architecture, $crate, @files) = @ARGV;
        sub slurp { open my $f, "<", $_[0] or die "$_[0]: $!\n"; local $/; <$f> }
        # A crate`s line stands between two rules, and its floors below them.
        my $text = slurp($architecture);
        my ($floor, %floor, %crate) = (0);
        for my $part ("heapwright", "heapwright-substrate") {
            my ($picture) = $text =~ /^$part  .*?\n-+\n(.*?)\n-+\n/ms or die "no picture of the floors of $part\n";
            for (split /\n/, $picture) {
                next if /^\s/;
                $floor++;
                my ($names) = /^(\S+(?: \S+)*)(?:  |$)/;
                $floor{$_} = $floor, $crate{$_} = $part for split / /, $names;
            }
        }
        my $breaches = 0;
        for my $file (@files) {
            my ($path) = $file =~ m{/src/(.*)\.rs$};
            next if $path eq "lib" or $path =~ m{(^|[_/])tests?\b|^testing(/|$)};
            my ($module) = split m{/}, $path;
            my $own = $floor{$module};
            if (!$own or $crate{$module} ne $crate) {
                print "$file: no floor of $crate in ARCHITECTURE.md has `$module`\n";
                $breaches++;
                next;
            }
            my $text = slurp($file);
            $text =~ s#//[^\n]*##g;
            $text =~ s/\x23\[cfg\((?:all\()?test\b[^\n]*\n(?:\s*\x23\[[^\n]*\n)*\s*(?:pub(?:\([^)]*\))? )?mod \w+ \{.*//s;
            $text =~ s/\x23\[cfg\((?:all\()?test\b[^\]]*\]\s*[^;{]*(?:;|\{[^\n]*\n)//g;
            my %named;
            while ($text =~ /\bcrate::(?:(\w+)|\{(.*?)\};)/gs) {
                my @names = defined $1 ? $1 : map { /^\s*(\w+)/ ? $1 : () } split /,(?![^{]*\})/, $2;
                $named{$_}++ for @names;
            }
            for (sort keys %named) {
                next if !$floor{$_} or $floor{$_} > $own or $_ eq $module;
                print "$file: `$module` names `$_`, which does not stand below it\n";
                $breaches++;
            }
        }
        exit($breaches ? 1 : 0);
    ' ARCHITECTURE.md "$1" $(find "$2" -name '*.rs' | sort)
}

for crate in heapwright heapwright-substrate; do
    check $crate crates/$crate/src || die "imports must point downward"
done

# That the check can fail: a copy in which the lowest floor names the highest, and one that has a
# floor of the other crate.
mkdir -p "$SCRATCH/src/os" "$SCRATCH/src/heap"
printf 'use crate::registry;\n' >"$SCRATCH/src/os/wrong.rs"
if check heapwright-substrate "$SCRATCH/src" >/dev/null; then die "an import that points upward is not seen"; fi
rm "$SCRATCH/src/os/wrong.rs"
printf '\n' >"$SCRATCH/src/heap/wrong.rs"
if check heapwright-substrate "$SCRATCH/src" >/dev/null; then die "a floor of another crate is not seen"; fi
say "imports point downward"
