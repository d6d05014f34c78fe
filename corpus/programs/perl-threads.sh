# ways: check leaks
# needs: perl:perl
$CHECK perl -e '
    use threads; use Encode; use POSIX;
    my %h = map { $_ => [1 .. $_ % 50] } 1 .. 2000;
    my @t = map { my $k = $_; threads->create(sub { my $s = $k; $s += length join ",", @{ $h{$_} } for keys %h; $s }) } 1 .. 3;
    print $_->join, "\n" for @t;
    open my $p, "-|", "echo child"; print <$p>;
    print "$1 ", length encode("utf8", "\x{263a}" x 100), strftime("%Y", gmtime 0), "\n" if "aaab" =~ /(a+)b/;'
