# A large heap lives while requests come and go. Prints the longest time for which a collection
# stops the program.
#
#   pause.rb [MIB] [SECONDS] [ROWS]     default 1024 30 1000
#
# The heap has MIB of objects of several kinds in ROWS arrays, and a quarter more for the
# collector's own data. Then for SECONDS some objects are replaced, one by one, and the program
# reads a clock after each. The longest gap between two readings is the pause that the program has
# seen, whatever caused it. The collector scans an array in one piece: ROWS 1 shows the cost of an
# array of two million elements.
mib, seconds, rows = (ARGV[0] || 1024).to_i, (ARGV[1] || 30).to_f, (ARGV[2] || 1000).to_i
clock = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }

make = ->(n) { { "id" => n, "name" => "user #{n}", "tags" => ["a#{n}", "b#{n}", n * 0.5], "address" => { "street" => "#{n} high street" } } }
megabytes = -> { File.read("/proc/self/smaps_rollup")[/^Rss:\s+(\d+)/, 1].to_i / 1024 }
live = Array.new(rows) { [] }
count = 0
until count % 10_000 == 0 && count > 0 && megabytes[] >= mib * 1.25
  live[count % rows] << make[count]
  count += 1
end
before = GC.stat
gaps, last = [], clock[]
ends = last + seconds
n = 0
while last < ends
  row = live[rand(rows)]
  row[rand(row.size)] = make[n += 1]
  now = clock[]
  gaps << now - last if now - last > 0.0005
  last = now
end
after = GC.stat
gaps.sort!
printf "%d objects in %d MiB; %d collections, %d of them major; %d replaced a second\n", count, megabytes[],
       after[:count] - before[:count], after[:major_gc_count] - before[:major_gc_count], n / seconds
printf "longest gap %.1f ms, then %s; 99 %% of those over 0.5 ms are below %.1f ms; %.0f ms a second in such gaps\n", gaps.last * 1e3,
       gaps.last(6).reverse.drop(1).map { |gap| (gap * 1e3).round(1) }.join(" "), gaps[gaps.size * 99 / 100] * 1e3, gaps.sum * 1e3 / seconds
if after[:longest_pause_ns]
  printf "longest pause %.1f ms by the clock, %.1f ms of processor time\n", after[:longest_pause_ns] / 1e6, after[:longest_pause_cpu_ns] / 1e6
end
