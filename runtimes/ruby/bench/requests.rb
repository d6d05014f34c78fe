# A server's requests without the network: JSON in, some work on a store that lives, ERB and JSON
# out. Prints the requests a second, and the percentiles of their times in microseconds.
require "json"
require "erb"

COUNT = Integer(ARGV[0] || 8000)
PAGE = ERB.new(<<~PAGE, trim_mode: "-")
  <h1><%= user[:name] %></h1>
  <%- orders.each do |order| -%>
  <li><%= order["id"] %>: <%= order["lines"].map { |line| ERB::Util.html_escape(line["name"]) }.join(", ") %> (<%= order["lines"].sum { |line| line["price"] }.round(2) %>)</li>
  <%- end -%>
PAGE

Session = Struct.new(:user, :history, :cache)
store = Hash.new { |hash, id| hash[id] = Session.new({ name: "user #{id}", id: id }, [], {}) }
20_000.times { |id| store[id].history << { "id" => id, "lines" => [{ "name" => "first", "price" => 1.5 }] } }

bodies = Array.new(64) do |i|
  JSON.generate("id" => i, "lines" => Array.new(5 + i % 7) { |j| { "name" => "<thing #{j}>", "price" => j * 1.25, "tags" => %w[a b c] } })
end
times = []
random = Random.new(1)
bytes = 0
began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
COUNT.times do |i|
  start = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  session = store[random.rand(20_000)]
  order = JSON.parse(bodies[i % bodies.size])
  session.history << order
  session.history.shift if session.history.size > 8
  user, orders = session.user, session.history
  page = PAGE.result(binding)
  session.cache[:last] = page if i % 16 == 0
  bytes += JSON.generate("page" => page, "orders" => orders).bytesize
  times << (Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - start) / 1000
end
seconds = Process.clock_gettime(Process::CLOCK_MONOTONIC) - began
# For picture.py: the time of each request, in order.
File.write(ENV["REQUEST_TIMES"], times.pack("L*")) if ENV["REQUEST_TIMES"]
times.sort!
at = ->(share) { times[[(times.size * share).to_i, times.size - 1].min] }
puts bytes
warn format("requests/s %.0f p50 %d p99 %d p99.9 %d p100 %d", COUNT / seconds, at[0.5], at[0.99], at[0.999], times.last)
