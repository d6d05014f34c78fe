# A compiler's load: the standard library's files become trees, all of which live for a while.
require "prism"

files = Dir[File.join(ARGV[1] || RbConfig::CONFIG["rubylibdir"], "**/*.rb")].sort
nodes = 0
trees = []
Integer(ARGV[0] || 1).times do
  files.first(700).each do |file|
    tree = Prism.parse(File.read(file)).value
    trees << tree
    trees.shift if trees.size > 60
    queue = [tree]
    while (node = queue.pop)
      nodes += 1
      queue.concat(node.compact_child_nodes)
    end
  end
end
puts nodes
