# ways: preload long
# needs: ruby:ruby
# main: ruby
ruby -rjson -e '
    data = (1..20000).map { |i| { "id" => i, "name" => "n#{i * 7919 % 1009}", "list" => (0...(i % 20)).to_a } }
    back = JSON.parse(JSON.generate(data)); puts back == data
    groups = back.group_by { |r| r["name"] }; puts groups.size, groups.values.map(&:size).max
    GC.start; GC.compact if GC.respond_to?(:compact)
    puts (1..4).map { |t| Thread.new { (1..20000).map { |i| "s" * (i % 60) }.sum(&:size) + t } }.map(&:value).inspect
    r, w = IO.pipe; pid = fork { w.puts data.to_s.size; exit! 9 }; Process.wait pid; puts r.gets, $?.exitstatus
    puts "x" * 50_000 =~ /x{500}y/ ? 1 : 0
    require "set"; puts Set.new(back.flat_map { |h| h["list"] }).size
    raise ArgumentError, "raised" ' 2>&1 | sed 's/-e:[0-9]*//'
