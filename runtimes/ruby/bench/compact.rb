# The memory that GC.compact gives back: a table of 200,000 entries loses nine in ten of them,
# spread over all pages.
def show(what)
  pages = GC.stat(:heap_allocated_pages)
  puts format("%-8s %5d pages, RSS %4d MiB", what, pages, File.read("/proc/self/statm").split[1].to_i * 4 / 1024)
end
table = {}
200_000.times { |i| table["key #{i}"] = [i, i.to_s, { i => "x" * (i % 100) }] }
show "full"
table.delete_if { |_, value| value[0] % 10 != 0 }
2.times { GC.start }
show "sparse"
2.times { GC.compact; show "compact" }
