# The model is GCBench (Ellis, Kovac, Boehm): trees built from above and from below, beside a
# long-lived tree and an array of floats.
class Node
  attr_accessor :left, :right

  def initialize(left = nil, right = nil)
    @left = left
    @right = right
    @i = @j = 0
  end
end

def populate(depth, node)
  return if depth <= 0
  node.left = Node.new
  node.right = Node.new
  populate(depth - 1, node.left)
  populate(depth - 1, node.right)
end

def make(depth)
  depth <= 0 ? Node.new : Node.new(make(depth - 1), make(depth - 1))
end

def size(depth)
  (1 << (depth + 1)) - 1
end

long_lived = Node.new
populate(16, long_lived)
floats = Array.new(500_000) { |i| 1.0e300 / (i + 1) }
4.step(16, 2) do |depth|
  turns = 2 * size(16) / size(depth)
  turns.times { populate(depth, Node.new) }
  turns.times { make(depth) }
end
puts floats[1000] > 0 && long_lived.left.right ? "ok" : "lost"
