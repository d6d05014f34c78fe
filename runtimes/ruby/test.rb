# Tests of the port's own behaviour, run in every way to collect (RUBY_HEAPWRIGHT=verify,...).
# Ruby's suite does not test these: objects whose deaths the sweep does not report, weak places of
# old maps, forks in other threads than the first, Ractors that collect.
require "tmpdir"
require "weakref"
require "objspace"

def check(what, holds = yield)
  raise "not so: #{what}" unless holds
end

def garbage(count = 20_000)
  kept = nil
  count.times { |i| kept = [i.to_s * 3, { i => kept && kept[0] }, i * 1.0e300] }
  kept
end

def noting(list) = proc { |id| list << id } # not a closure of the object

check("the collector", GC.config[:implementation] == "heapwright")

# Ruby makes its table of ids at the first query, from the live objects. So a dead object that is
# not swept yet has an id that the table lacks.
if RUBY_VERSION >= "4"
  named = Object.new
  id = named.object_id
  Array.new(20_000) { Object.new.object_id }
  1000.times { GC.latest_gc_info(:state) == :sweeping ? break : garbage(200) }
  check("an id leads back in the midst of a sweep") { ObjectSpace._id2ref(id).equal?(named) }
  GC.start
end

# Finalizers get ids, also those of objects whose deaths the sweep does not report. No id is used
# twice.
ids, finalized = [], []
[-> { Object.new }, -> { 1.0e300 * rand }, -> { "string" * 20 }, -> { [1] * 100 }, -> { 2**80 + rand(9) }].each do |make|
  20.times do
    object = make.call
    ids << object.object_id
    ObjectSpace.define_finalizer(object, noting(finalized)) unless object.frozen?
  end
end
garbage
3.times { GC.start }
check("most finalizers ran: #{finalized.size}", finalized.size > 48)
check("with the ids of their objects") { (finalized - ids).empty? && finalized.uniq.size == finalized.size }
check("ids are new") { (Array.new(1000) { Object.new.object_id } & ids).empty? }
live = Array.new(10) { Object.new }
check("an id leads back") { live.all? { |object| ObjectSpace._id2ref(object.object_id).equal?(object) } }
begin
  ObjectSpace._id2ref(finalized.first)
  raise "a recycled id leads somewhere"
rescue RangeError => error
  check("it says so", error.message.include?("recycled"))
end

# Weak maps, young and old, and keys that are removed while collections run.
map, keys = ObjectSpace::WeakMap.new, ObjectSpace::WeakKeyMap.new
4.times { GC.start }
kept = Array.new(500) { |i| "key #{i}" }
kept.each_with_index { |key, i| map[key] = "value"; keys[key] = i }
500.times { |i| map[Object.new] = Object.new; keys["other #{i}"] = i }
garbage
4.times { GC.start(full_mark: false) }
kept.first(100).each { |key| keys.delete(key) }
garbage
GC.start
check("what is kept is found") { kept.drop(100).each_with_index.all? { |key, i| keys[key] == i + 100 } }
check("what is not goes: #{map.size}", map.size < 520)
values = ObjectSpace::WeakMap.new # The keys die and the value lives: Ruby frees such entries when it likes.
value = Object.new
5.times do
  500.times { values[Object.new] = value }
  GC.start
  values.keys
  garbage(2000)
  2.times { GC.start(full_mark: false) }
end
kept.each { |key| values[key] = [key] }
read = kept.map { |key| values[key] }
4.times { garbage(2000); GC.start(full_mark: false) }
check("old maps keep what others keep") { kept.zip(read).all? { |key, list| values[key].equal?(list) } }
weak = Array.new(100) { WeakRef.new(Object.new) }
GC.start
check("weak references", weak.count(&:weakref_alive?) < 10)

# Tables of the VM that keep nothing: interned strings, symbols, variables of objects that have no
# room for them, methods of singletons.
10.times do |turn|
  2000.times do |i|
    -"interned #{turn} #{i % 700}"
    "symbol_#{turn}_#{i}".to_sym if i % 3 == 0
    string = "has variables"
    string.instance_variable_set(:@it, [i])
    string.instance_variable_set(:@that, i)
    object = Object.new
    def object.own = 1
    object.own
  end
  check("an interned string is one") { (-"interned 0 1").equal?(-"interned 0 1") }
end
check("a symbol is one") { "sym#{1}bol".to_sym.equal?(:sym1bol) }

# Objects without barriers, into which the program stores without a report to the collector.
match = nil
2000.times { |i| match = "text #{i}".match(/(\d+)/) if i % 50 == 0; garbage(50) if i % 100 == 0 }
check("a match", match[1] == "1950")
enumerator = Enumerator.new { |out| 100_000.times { |i| out << i.to_s } }
500.times { |i| check("an enumerator's stack") { enumerator.next == i.to_s } ; garbage(20) if i % 50 == 0 }

# Objects that move: keys by address, tables that know objects without keeping them, code, and
# references on stacks.
Node = Struct.new(:left, :right, :own)
class Holder
  def initialize(n)
    @a, @b, @c = n, [n], { n => n.to_s }
    @d = @e = @f = n if n % 3 == 0
  end
  attr_reader :a, :b, :c
end
tree = ->(depth) { depth == 0 ? nil : Node.new(tree[depth - 1], "leaf #{depth}" * (depth % 5), Holder.new(depth)) }
same = { }.compare_by_identity
moving = Array.new(4000) { |i| [Holder.new(i), "s" * (i % 120), i % 7 == 0 ? tree[6] : :"symbol #{i}", 1.0e300 * i, 2**70 + i] }
moving.each_with_index { |list, i| same[list[1]] = i; list[1].instance_variable_set(:@beside, [i]) if i % 50 == 0 }
numbered = moving.first(50).map { |list| [list[0].object_id, list[0]] }
gone = []
ended = moving.each_slice(100).map { |slice| slice[0][0].tap { |holder| ObjectSpace.define_finalizer(holder, noting(gone)) }.object_id }
map, keys = ObjectSpace::WeakMap.new, ObjectSpace::WeakKeyMap.new
moving.each { |list| map[list[0]] = list[1]; keys[list[1]] = list[3] }
halfway = Fiber.new { |list| local = list.map(&:itself); Fiber.yield; local.map { |inner| inner[0].a } }
halfway.resume(moving)
asleep = Thread.new { local = moving.map { |list| list[1].dup }; Thread.stop; local.sum(&:size) }
Thread.pass until asleep.stop?
moving.concat(Array.new(20_000) { |i| ["fill #{i}"] }).delete_if.with_index { |_, i| i >= 4000 && i % 9 != 0 }
3.times do |turn|
  case turn
  when 0 then check("something moves") { GC.compact[:moved].sum { |_, count| count } > 0 }
  when 1 then check("many move: #{(moved = GC.verify_compaction_references(toward: :empty, expand_heap: true)[:moved])}") { moved.sum { |_, count| count } > 500 }
  else
    GC.auto_compact = true
    count = GC.stat(:compact_count)
    grown = []
    grown << Array.new(1000) { |i| i.to_s * 9 } until GC.stat(:compact_count) > count || grown.size > 5000 # the live objects cause a major collection
    check("it compacts by itself") { GC.stat(:compact_count) > count }
    GC.config(rgengc_allow_full_mark: false)
    count = GC.stat(:compact_count)
    GC.start
    check("no full mark, no compaction") { GC.stat(:compact_count) == count }
    GC.config(rgengc_allow_full_mark: true)
    GC.auto_compact = false
    count = GC.stat(:compact_count)
    3.times { GC.start; garbage }
    check("it was switched off") { GC.stat(:compact_count) == count }
  end
  GC.verify_internal_consistency
  moving.first(4000).each_with_index do |list, i|
    holder, string, inner, float, big = list
    check("an object, #{i}") { holder.a == i && holder.b == [i] && holder.c[i] == i.to_s }
    check("a string, and by its identity") { string == "s" * (i % 120) && same[string] == i && map[holder].equal?(string) && keys.key?(string) }
    check("what lies beside") { i % 50 != 0 || string.instance_variable_get(:@beside) == [i] }
    check("numbers and symbols") { float == 1.0e300 * i && big == 2**70 + i && (i % 7 == 0 ? inner.own.a == 6 : inner.equal?(:"symbol #{i}")) }
  end
  check("ids") { numbered.all? { |id, holder| holder.object_id == id && ObjectSpace._id2ref(id).equal?(holder) } }
  garbage
end
check("a fiber's") { halfway.resume == Array.new(4000) { |i| i } }
asleep.run
check("a thread's") { asleep.value == Array.new(4000) { |i| i % 120 }.sum }
slice = moving[0][2] = Array.new(50) { |i| i }[10..40]
GC.verify_compaction_references
check("a shared array") { slice == (10..40).to_a }
moving = same = halfway = asleep = numbered = nil
3.times { GC.start; garbage }
check("finalizers of what was there: #{(gone - ended).size} unknown") { (gone - ended).empty? && gone.size > 20 }

# If a key dies in the first collection of a compaction, the objects that only this key keeps die in
# the second. They are updated before they are freed.
class Base; def foo = 1; def bar(x) = x; end
keys = ObjectSpace::WeakKeyMap.new
4.times do |turn|
  600.times do |i|
    text = "root #{i} " * 40
    keys["key #{turn} #{i}"] = case i % 4
    when 0 then eval("proc { |x| x.foo; x.bar(#{i}); x.to_s }").tap { |block| block.call(Base.new) }
    when 1 then Class.new(Base) { class_eval "def foo = super() + #{i}; def baz = bar(2)" }.new.tap { |own| own.foo; own.baz }
    when 2 then [text, text[3..], text.dup, { text => i }]
    else Array.new(60) { |n| n.to_s }.then { |list| [list, list[5..50], Struct.new(:a, :b).new(list, i), binding] }
    end
  end
  turn.even? ? GC.compact : GC.verify_compaction_references
  check("what lives calls") { Base.new.then { |base| base.foo + base.bar(turn) } == turn + 1 }
end

# Walks: also if the block allocates, collects, throws, or breaks.
ObjectSpace.each_object(Module) { |mod| mod.name; "x" * 100 }
check("it breaks", ObjectSpace.each_object(String) { |string| break 7 if string } == 7)
begin
  ObjectSpace.each_object(Class) { GC.start; raise ArgumentError }
rescue ArgumentError
  nil
end
20.times { ObjectSpace.to_enum(:each_object, Module).next } # its fiber is never resumed
GC.start
100.times { Fiber.new { [1].dup; Fiber.yield }.resume }
GC.start
counts = ObjectSpace.count_objects
check("counts add up") { counts[:TOTAL] - counts[:FREE] == counts.sum { |name, count| name.start_with?("T_") ? count : 0 } }

# Switches.
GC.disable
count = GC.count
garbage
check("disabled", GC.count == count)
GC.enable
GC.config(rgengc_allow_full_mark: false)
before = GC.stat(:major_gc_count)
10.times { garbage }
majors = GC.stat(:major_gc_count) - before
check("full marks: #{majors}", majors == 0 || ENV["RUBY_HEAPWRIGHT"].to_s.include?("generations=0"))
GC.config(rgengc_allow_full_mark: true)
GC.stress = true
[1, 2].map { |i| { i => i.to_s } }
20.times { |i| ObjectSpace.define_finalizer(Object.new, proc { { i => Object.new.object_id } }) }
200.times { Object.new.object_id }
GC.stress = nil
count = GC.count
garbage
check("no stress: #{GC.count - count} collections", GC.count - count < 100)
Process.warmup

# Forks of a thread that is not the first, while other threads work. The child collects, finalizes,
# and forks again.
workers = Array.new(3) { Thread.new { garbage(30_000) } }
status = Thread.new do
  child = fork do
    garbage
    GC.start
    grandchild = fork { garbage; exit!(3) }
    Process.wait(grandchild)
    exit!($?.exitstatus == 3 && Thread.list.size == 1 ? 5 : 6)
  end
  Process.wait(child)
  $?.exitstatus
end.value
workers.each(&:join)
check("the children collect: #{status}", status == 5)

started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
Thread.new { 3.times { system("true") } }.join # system forks, and Ruby tells the collector nothing
check("it is not waited for") { Process.clock_gettime(Process::CLOCK_MONOTONIC) - started < 2.5 }

# A fork while another thread runs finalizers: the child runs its own, and writes its files out.
path = File.join(Dir.tmpdir, "heapwright-test-#{$$}")
def sleeping = proc { sleep(0.5) }
3.times { ObjectSpace.define_finalizer(Object.new, sleeping) }
running = Thread.new { 3.times { GC.start } }
sleep(0.1)
Process.wait(fork { File.open(path, "w").write("kept") })
check("what a child has written: #{File.read(path)}", File.read(path) == "kept")
File.delete(path)
running.join

# Ractors: each has a mutator; collections stop all of them.
Warning[:experimental] = false
ractors = Array.new(4) do |number|
  Ractor.new(number) do |own|
    sum = 0
    300.times do |i|
      list = Array.new(200) { |j| "#{own} #{i} #{j}" }
      sum += list.sum(&:size)
      GC.start if i % 100 == own
    end
    sum
  end
end
garbage(50_000)
answer = Ractor.method_defined?(:value) ? :value : :take # since 4.0
sums = ractors.map(&answer)
check("Ractors: #{sums}", sums.uniq.size == 1 && sums[0] > 0)
waiting = Array.new(3) { Ractor.new { Ractor.receive } }
child = fork do # the child lacks the waiting Ractors, and frees their remains
  waiting = nil
  3.times { garbage; GC.start }
  exit!(0)
end
Process.wait(child)
check("a fork with Ractors: #{$?}", $?.success?)
aged = "x" * 100
GC.start(full_mark: false)
aged.instance_variable_set(:@variable, [])
check("an age can be asked for while Ractors wait") { ObjectSpace.dump(aged).include?("STRING") }
waiting.each { |ractor| ractor.send(1) }.each(&answer)
garbage

# The end of a process writes out files that nobody closed, also dead ones that await the sweep.
unwritten = (0..20).reject do |rounds|
  reader, writer = IO.pipe
  child = fork do
    writer.autoclose = false
    5.times { IO.for_fd(writer.fileno, "w", autoclose: false).write("x") }
    garbage(rounds * 1_000)
    exit
  end
  writer.close
  Process.wait(child)
  reader.read == "xxxxx"
end
check("unclosed files are written: #{unwritten}", unwritten.empty?)

GC.verify_internal_consistency
dump = File.join(Dir.tmpdir, "heapwright-test-#{$$}.dump")
check("a dump names classes") { File.binread(GC.heapwright_dump(dump)).include?("WeakRef") }
File.delete(dump)
puts "ok"
