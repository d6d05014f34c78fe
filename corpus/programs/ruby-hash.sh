# ways: leaks
# needs: ruby:ruby
# leaks: shown
$CHECK "$(ruby -e 'puts RbConfig.ruby')" --disable-gems -e 'h = {}; 5000.times { |i| h["k#{i}"] = [i] * (i % 9) }; puts h.size, h.values.flatten.sum; Thread.new { GC.start }.join'
