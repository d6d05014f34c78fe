# ways: more
# needs: gdc
cat >a.d <<'D'
import std.stdio, std.algorithm, std.array, std.conv, std.parallelism;
void main() {
    auto words = new string[](0);
    foreach (i; 0 .. 3000) words ~= to!string(i * 7919 % 997);
    int[string] count;
    foreach (w; words) count[w]++;
    writeln(count.length, " ", words.sort().uniq().array().length, " ", taskPool.reduce!"a + b"(0, words.map!(w => cast(int) w.length)));
}
D
$CHECK gdc -g a.d -o a && $CHECK ./a
