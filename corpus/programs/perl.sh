# ways: preload
# needs: perl:perl
# main: perl
perl "$ROOT/bench/programs/text.pl"
perl -e '
    my %h = map { $_ => [1 .. $_ % 50] } 1 .. 20000;
    my $s = ""; $s .= join(",", @{ $h{$_} }) for sort { $a <=> $b } keys %h;
    print length $s, "\n";
    my @kids; for my $k (1 .. 4) {
        pipe my $r, my $w; my $pid = fork;
        if (!$pid) { my $x = join "", map { chr(97 + $_ % 26) x $k } 1 .. 50000; print $w length $x; exit $k }
        close $w; push @kids, [$pid, $r] }
    for (@kids) { my ($pid, $r) = @$_; my $n = <$r>; waitpid $pid, 0; print "$n ", $? >> 8, "\n" }
    my $big = "x" x 50_000_000; $big =~ s/x{1000}/y/g; print length $big, "\n";
    eval { die { code => 42 } }; print $@->{code}, "\n";
    local $SIG{ALRM} = sub { die "alarm\n" }; alarm 1; eval { my @a; push @a, "z" x ($_ % 500) for 1 .. 1e9 }; print $@;
    exit 3'
