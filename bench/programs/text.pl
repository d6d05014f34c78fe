# Turns text into hashes of arrays, and sorts and joins them again. Strings of every length grow,
# are copied and dropped. Perl asks malloc for each of them. text.pl [PERCENT]
use strict;
use warnings;

my ($state, %index) = (12345);
sub random { $state = ($state * 1103515245 + 12345) & 0x7fffffff; return $state >> 8 }

for my $line (1 .. 240 * ($ARGV[0] // 100)) {
    my @words = map { "w" . random() % 5000 } 1 .. 4 + random() % 6;
    my $text = join " ", @words;
    push @{ $index{$_} }, $line . ":" . $text for @words;
}

my ($longest, $total) = (0, 0);
for my $word (sort keys %index) {
    my $joined = join "\n", sort @{ $index{$word} };
    (my $upper = $joined) =~ s/w(\d+)/W$1/g;
    $longest = length $upper if length $upper > $longest;
    $total += @{ $index{$word} };
}
print scalar(keys %index), " $longest $total\n";
