# Groups, sorts, renders and parses records: strings, arrays and hashes of every size. Ruby keeps
# small objects in pages of its own. For longer strings, arrays and hash tables it calls malloc.
# records.rb [PERCENT]
require "json"

state = 12345
random = lambda do |limit|
  state = (state * 1103515245 + 12345) & 0x7fffffff
  (state >> 8) % limit
end

records = (1..320 * Integer(ARGV[0] || 100)).map do |id|
  {
    "id" => id,
    "name" => "name-#{random.call(5000)}",
    "tags" => Array.new(random.call(12)) { "tag-#{random.call(300)}" },
    "text" => "word " * random.call(40),
  }
end

back = JSON.parse(JSON.generate(records))
groups = back.group_by { |record| record["name"] }
lines = groups.sort.map do |name, members|
  tags = members.flat_map { |record| record["tags"] }.tally.sort_by { |tag, times| [-times, tag] }
  "#{name}: #{members.size} #{tags.first(5).map { |tag, times| "#{tag} #{times}" }.join(", ")}"
end
text = lines.join("\n").gsub(/tag-(\d+)/) { "T#{Regexp.last_match(1).rjust(4, "0")}" }
words = text.split(/\W+/).each_slice(7).map { |slice| slice.join("-") }
puts back == records, groups.size, text.size, words.uniq.size, text.sum
