# Hashes, regular expressions and strings that grow: text.pl SCALE
use strict;
use warnings;

my ($scale) = @ARGV;
my $state = 12345;
sub random { $state = ($state * 1103515245 + 12345) & 0x7fffffff; return ($state >> 8) % $_[0] }

my (%index, @lines);
for my $line (1 .. 2400 * $scale) {
    my $text = join " ", map { "w" . random(5000) } 1 .. 4 + random(8);
    $text .= " <b>" . "t" x random(60) . "</b>";
    push @lines, $text;
    push @{ $index{$1} }, $line while $text =~ /\b(w\d+)\b/g;
}
my ($longest, $total, $out) = (0, 0, "");
for my $word (sort keys %index) {
    my $joined = join ",", map { "$_:" . substr $lines[ $_ - 1 ], 0, 24 } @{ $index{$word} };
    (my $upper = $joined) =~ s/w(\d+)/W<$1>/g;
    $longest = length $upper if length $upper > $longest;
    $total += @{ $index{$word} };
    $out .= substr $upper, 0, 200;
}
my %objects = map { $_ => { name => "n$_", list => [ 1 .. $_ % 30 ], text => "x" x ($_ % 90) } } 1 .. 500 * $scale;
delete $objects{$_} for grep { $_ % 3 == 0 } keys %objects;
my $sum = 0;
$sum += @{ $_->{list} } + length $_->{text} for values %objects;
my $tags = () = join("", @lines) =~ /<b>t+<\/b>/g;
print scalar(keys %index), " $longest $total ", length $out, " $sum $tags\n";
