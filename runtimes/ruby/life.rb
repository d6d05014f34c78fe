# A server under load for some time: threads behind sockets in forked workers, JSON and ERB,
# sessions that come and go. Its memory must stay as it was after the first tenth. Nothing may be
# lost, and no worker may crash. The longest pauses are printed.
#
#   life.rb [SECONDS]      default 600
require "erb"
require "json"
require "socket"

SECONDS = Integer(ARGV[0] || 600)
WORKERS = 2
THREADS = 4
PAGE = ERB.new(<<~PAGE, trim_mode: "-")
  <ul><%- lines.each do |line| -%><li><%= ERB::Util.html_escape(line["name"]) %>: <%= line["price"] %></li><%- end -%></ul>
PAGE

def rss(pid)
  File.read("/proc/#{pid}/smaps_rollup")[/^Rss:\s+(\d+)/, 1].to_i / 1024.0
end

def answer(sessions, lock, request)
  order = JSON.parse(request)
  lines = order["lines"]
  page = PAGE.result(binding)
  lock.synchronize do
    sessions[order["user"]] = { "last" => order, "page" => page }
    sessions.shift if sessions.size > 5_000
  end
  ObjectSpace.define_finalizer(order, Finished) if order["user"] % 50 == 0
  JSON.generate("page" => page, "users" => sessions.size)
end

Finished = proc { |_id| }

def serve(server, control)
  sessions, lock = {}, Mutex.new
  Array.new(THREADS) do
    Thread.new do
      loop do
        client = server.accept
        while (request = client.gets)
          client.write(answer(sessions, lock, request), "\n")
        end
        client.close
      rescue Errno::ECONNRESET, Errno::EPIPE
        client&.close
      end
    end
  end
  control.gets # the end
  stat = GC.stat
  control.puts(JSON.generate(count: stat[:count], time: stat[:time], longest: stat.fetch(:longest_pause_ns, 0)))
  exit!(0)
end

server = TCPServer.new("127.0.0.1", 0)
port = server.local_address.ip_port
workers = Array.new(WORKERS) do
  mine, its = UNIXSocket.pair
  pid = fork do
    mine.close
    serve(server, its)
  end
  its.close
  [pid, mine]
end

failures, done = Queue.new, 0
stop = false
clients = Array.new(WORKERS * THREADS) do |number|
  Thread.new do
    random = Random.new(number)
    until stop
      socket = TCPSocket.new("127.0.0.1", port)
      (10 + random.rand(50)).times do
        lines = Array.new(1 + random.rand(20)) { |i| { "name" => "<thing #{i}>", "price" => random.rand(100) / 4.0 } }
        socket.puts(JSON.generate("user" => random.rand(20_000), "lines" => lines))
        reply = JSON.parse(socket.gets)
        failures << reply unless reply["page"].scan("<li>").size == lines.size
        done += 1
      end
      socket.close
    end
  rescue => error
    failures << error
  end
end

levels = []
steps = 20
steps.times do |step|
  sleep SECONDS / steps.to_f
  levels << workers.sum { |pid, _| rss(pid) }
  warn format("%4d s  %7d requests  workers' memory %.1f MiB", (step + 1) * SECONDS / steps, done, levels.last)
end
stop = true
clients.each(&:join)
workers.each do |pid, control|
  control.puts("end")
  told = JSON.parse(control.gets || "{}")
  warn "worker #{pid}: #{told["count"]} collections, #{told["time"]} ms, the longest pause #{(told["longest"].to_i / 1e6).round(2)} ms"
  Process.wait(pid)
  failures << "worker #{pid}: #{$?}" unless $?.success?
end
settled = levels[steps / 10]
abort "not flat: #{levels.map(&:round)}" if levels.last > settled * 1.15 + 5
abort "failed: #{failures.size}, #{failures.pop}" unless failures.empty?
puts "ok: #{done} requests in #{SECONDS} s, workers' memory #{levels.last.round} MiB, #{settled.round} after a tenth"
