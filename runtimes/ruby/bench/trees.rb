# Binary trees of arrays of two: short-lived ones beside one that lives.
def make(depth)
  depth == 0 ? [nil, nil] : [make(depth - 1), make(depth - 1)]
end

def count(tree)
  left, right = tree
  left ? 1 + count(left) + count(right) : 1
end

most = Integer(ARGV[0] || 15)
sum = count(make(most + 1))
long = make(most)
4.step(most, 2) do |depth|
  (2**(most - depth + 4)).times { sum += count(make(depth)) }
end
puts sum + count(long)
