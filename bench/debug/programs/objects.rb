# Objects, strings, hashes and sorting: objects.rb SCALE
# Ruby keeps small objects in pages of its own; what does not fit there (longer
# strings, arrays, tables) comes from malloc.
scale = Integer(ARGV.fetch(0))
state = 12345
random = lambda do |limit|
  state = (state * 1103515245 + 12345) & 0x7fffffff
  (state >> 8) % limit
end

class Order
  attr_reader :id, :customer, :lines

  def initialize(id, customer, lines)
    @id, @customer, @lines = id, customer, lines
  end

  def total = lines.sum { |line| line[:count] * line[:price] }

  def to_s = "#{id} #{customer}: #{lines.map { |line| "#{line[:count]} #{line[:name]}" }.join(", ")}"
end

orders = (1..1800 * scale).map do |id|
  lines = Array.new(1 + random.call(9)) do
    { name: "article-#{random.call(900)} #{"x" * random.call(40)}", count: 1 + random.call(5), price: random.call(1000) }
  end
  Order.new(id, "customer-#{random.call(700)}", lines)
end

by_customer = orders.group_by(&:customer)
ranking = by_customer.map { |name, list| [name, list.sum(&:total)] }.sort_by { |name, sum| [-sum, name] }
texts = orders.sort_by { |order| [order.total, order.id] }.map(&:to_s)
words = Hash.new(0)
texts.each { |text| text.split(/\W+/).each { |word| words[word] += 1 } }
upper = texts.each_slice(20).map { |slice| slice.join("\n").gsub(/article-(\d+)/) { "A#{$1.rjust(4, "0")}" } }
puts ranking.first(3).inspect, words.size, words.values.sum, upper.sum(&:size), upper.uniq.size, upper.join.sum
