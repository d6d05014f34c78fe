#!/usr/bin/env perl
# Makes the inputs of the programs in the race. Every machine gets the same bytes, because the
# script has its own random numbers with a fixed seed.
#
#   generate.pl c COUNT          a C file of that many groups of functions
#   generate.pl rust COUNT       a Rust crate of that many modules
#   generate.pl json COUNT       a JSON document of that many records
#   generate.pl history COUNT    a git history of that many commits, as a stream
#                                for git fast-import
#   generate.pl redis COUNT      commands for redis-cli --pipe, about that many
use strict;
use warnings;

my $state = 20230917;

# 0 .. $n - 1. The high bits count, because the low bits of such a generator soon repeat.
sub random {
    my ($n) = @_;
    $state = ($state * 1103515245 + 12345) & 0x7fffffff;
    return ($state >> 8) % $n;
}

# Words as in a language: a few are common, and many are rare.
my @syllables = qw(ba co di fu ga he ji ko lu ma ne po qui ra se ti vu wo xa ye zo str ing ent al or is);
my @words = map { join "", map { $syllables[random(scalar @syllables)] } 1 .. 1 + random(4) } 1 .. 4000;
sub word { my $range = 1 << (2 + random(11)); return $words[random($range) % @words] }
sub sentence { return join " ", map { word() } 1 .. $_[0] }

# The compiler proper is called, without its driver's include paths. So the code has its own
# declarations.
sub c {
    my ($count) = @_;
    print "int printf(const char *, ...);\nvoid *memset(void *, int, unsigned long);\nunsigned long strlen(const char *);\n";
    for my $i (0 .. $count - 1) {
        my ($a, $b) = (2 + $i % 13, 3 + $i % 29);
        my ($x, $y, $z) = (random(1000), random(31), 1 + random(7));
        print <<"C";
struct s$i { int a[$a]; char name[$b]; struct s$i *next; };
static int f$i(struct s$i *p, int n) {
    int total = $x;
    for (int k = 0; k < n; k++) {
        switch ((p->a[k % $a] + k) % 7) {
            case 0: total += k * $i; break;
            case 1: total ^= p->name[k % $b] << $y; break;
            case 2: if (p->next) total += f$i(p->next, n / 2); break;
            case 3: total = total * 31 + (int)strlen(p->name); break;
            case 4: for (int j = 0; j < $z; j++) total += p->a[j % $a] * k; break;
            default: p->a[k % $a] = total;
        }
    }
    return total;
}
int g$i(int n) {
    struct s$i x;
    memset(&x, n, sizeof x);
    x.next = 0;
    x.name[0] = 0;
    printf("$i %d\\n", f$i(&x, n));
    return x.a[0];
}
C
    }
}

sub rust {
    my ($count) = @_;
    print "#![allow(dead_code)]\nuse std::collections::{BTreeMap, HashMap};\nuse std::fmt;\n";
    for my $i (0 .. $count - 1) {
        my ($x, $y) = (1 + random(1000), 2 + random(9));
        print <<"RUST";
pub mod m$i {
    use super::*;
    #[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub struct Record { pub id: u64, pub name: String, pub parts: Vec<Part> }
    #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Part { Text(String), Number(i64), Pair(Box<Part>, Box<Part>), Nothing }
    impl fmt::Display for Part {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self {
                Part::Text(text) => write!(f, "{text:>$y}"),
                Part::Number(number) => write!(f, "{}", number * $x),
                Part::Pair(a, b) => write!(f, "({a} {b})"),
                Part::Nothing => f.write_str("-"),
            }
        }
    }
    pub fn index(records: &[Record]) -> BTreeMap<String, Vec<u64>> {
        let mut all: HashMap<&str, Vec<u64>> = HashMap::new();
        for record in records.iter().filter(|r| r.id % $y != 0) {
            all.entry(record.name.as_str()).or_default().push(record.id + $x);
        }
        all.into_iter().map(|(name, ids)| (name.to_owned(), ids)).collect()
    }
    pub fn render(records: &mut Vec<Record>) -> Result<String, fmt::Error> {
        use fmt::Write;
        records.sort_by(|a, b| b.parts.len().cmp(&a.parts.len()).then_with(|| a.cmp(b)));
        records.dedup_by_key(|r| r.id);
        let mut text = String::new();
        for record in records.iter() {
            for part in &record.parts { write!(text, "{part}, ")?; }
            writeln!(text, "{record:?}")?;
        }
        Ok(text)
    }
}
RUST
    }
}

sub json {
    my ($count) = @_;
    print "[";
    for my $i (0 .. $count - 1) {
        my $tags = join ",", map { '"' . word() . '"' } 1 .. random(6);
        my $items = join ",", map {
            sprintf '{"sku":"%s-%d","count":%d,"price":%d.%02d}', word(), random(10000), 1 + random(9), random(500), random(100)
        } 1 .. random(4);
        my $note = random(3) ? '"' . sentence(1 + random(12)) . '"' : "null";
        print $i ? ",\n" : "\n";
        printf '{"id":%d,"name":"%s %s","active":%s,"score":%d.%d,"tags":[%s],"items":[%s],"note":%s,"place":{"city":"%s","x":%d.5,"y":%d.25}}',
            $i, word(), word(), random(2) ? "true" : "false", random(1000), random(10), $tags, $items, $note, word(), random(360), random(180);
    }
    print "\n]\n";
}

# A history of files in folders that change a few lines at a time, with merges of nothing. Dates and
# names are fixed, so every commit has the same name everywhere.
sub history {
    my ($count) = @_;
    my @files = map { { path => sprintf("%s/%s/%s-%d.txt", word(), word(), word(), $_), lines => [map { sentence(3 + random(10)) } 1 .. 40 + random(400)] } } 1 .. 150;
    my $date = 1700000000;
    for my $commit (1 .. $count) {
        my @changed = $commit == 1 ? @files : map { $files[random(scalar @files)] } 1 .. 1 + random(5);
        my $message = sentence(4 + random(20)) . "\n";
        $date += 600 + random(90000);
        print "commit refs/heads/main\nmark :$commit\n";
        print "committer A. Tester <tester\@example.org> $date +0000\n";
        print "data ", length($message), "\n$message";
        print "from :", $commit - 1, "\n" if $commit > 1;
        my %once;
        for my $file (grep { !$once{ $_->{path} }++ } @changed) {
            my $lines = $file->{lines};
            for (1 .. 1 + random(6)) {
                my $at = random(scalar @$lines);
                my $way = random(3);
                if ($way == 0) { splice @$lines, $at, 0, map { sentence(3 + random(10)) } 1 .. 1 + random(5) }
                elsif ($way == 1 && @$lines > 20) { splice @$lines, $at, 1 + random(3) }
                else { $lines->[$at] = sentence(3 + random(10)) }
            }
            my $text = join "", map { "$_\n" } @$lines;
            print "M 100644 inline $file->{path}\ndata ", length($text), "\n$text\n";
        }
        print "\n";
    }
}

# The commands of a cache and a queue, with values of every size up to a few kilobytes: set,
# overwrite, append, expire by deleting, lists, hashes, sorted sets.
sub redis {
    my ($count) = @_;
    my $send = sub {
        my @parts = @_;
        print "*", scalar @parts, "\r\n", map { "\$" . length($_) . "\r\n$_\r\n" } @parts;
    };
    my $value = sub { my $size = 1 << random(12); return "v" x ($size / 2 + random($size)) };
    for my $i (1 .. $count) {
        my ($way, $key) = (random(10), random(60000));
        if    ($way < 4) { $send->("SET", "key:$key", $value->()) }
        elsif ($way == 4) { $send->("DEL", "key:" . random(60000), "key:" . random(60000)) }
        elsif ($way == 5) { $send->("APPEND", "text:" . $key % 5000, sentence(1 + random(8))) }
        elsif ($way == 6) { $send->("RPUSH", "list:" . $key % 2000, map { word() } 1 .. 1 + random(4)) }
        elsif ($way == 7) { $send->("HSET", "hash:" . $key % 3000, word(), sentence(1 + random(10))) }
        elsif ($way == 8) { $send->("ZADD", "set:" . $key % 500, random(100000), word() . random(100)) }
        else { $send->("LPOP", "list:" . random(2000)) }
    }
}

my %kinds = (c => \&c, rust => \&rust, json => \&json, history => \&history, redis => \&redis);
my ($kind, $count) = @ARGV;
die "usage: generate.pl c|rust|json|history|redis COUNT\n"
    unless @ARGV == 2 && $kinds{$kind} && $count =~ /^[1-9][0-9]*$/;
$kinds{$kind}->($count);
